package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

func printHead() {
	fmt.Println("| run | taken in | taintlet's taint | kubelet's condition | its taint | ratio |")
	fmt.Println("|---|---|---|---|---|---|")
}

func printRun(run int, o outcome) {
	fmt.Printf("| %d | %s | %s | %s | %s | %s |\n", run, seconds(o.taking), seconds(o.own), seconds(o.condition), seconds(o.taint), ratio(o.taint, o.own))
}

func printSummary(outcomes []outcome) {
	column := func(pick func(outcome) time.Duration) []time.Duration {
		var values []time.Duration
		for _, o := range outcomes {
			values = append(values, pick(o))
		}
		slices.Sort(values)
		return values
	}
	taking, own := column(func(o outcome) time.Duration { return o.taking }), column(func(o outcome) time.Duration { return o.own })
	condition, taint := column(func(o outcome) time.Duration { return o.condition }), column(func(o outcome) time.Duration { return o.taint })
	for _, row := range []struct {
		name string
		of   func(sorted []time.Duration) time.Duration
	}{{"median", median}, {"p90", p90}} {
		fmt.Printf("| %s | %s | %s | %s | %s | %s |\n", row.name, seconds(row.of(taking)), seconds(row.of(own)),
			seconds(row.of(condition)), seconds(row.of(taint)), ratio(row.of(taint), row.of(own)))
	}
	fmt.Printf("\nmedian: taintlet is %s times sooner; taintlet's p90 is %.2f of the kubelet's median\n",
		ratio(median(taint), median(own)), p90(own).Seconds()/median(taint).Seconds())
}

// median is the middle, or the mean of the two in the middle.
func median(sorted []time.Duration) time.Duration {
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// p90 is the least value that nine of ten do not exceed.
func p90(sorted []time.Duration) time.Duration {
	return sorted[int(math.Ceil(0.9*float64(len(sorted))))-1]
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func ratio(slow, fast time.Duration) string {
	return fmt.Sprintf("%.1f", slow.Seconds()/fast.Seconds())
}
