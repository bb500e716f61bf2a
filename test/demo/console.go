package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	// indent stands before everything but the headings.
	indent = "    "
	// patience is how long anything is waited for: far above what a busy
	// machine needs, so that what is missing then is missing.
	patience = time.Minute
	// remindEvery is how often a long wait says that it goes on.
	remindEvery = 5 * time.Second
)

// console is where the story is told, to a person.
type console struct {
	w     io.Writer
	start time.Time
}

func newConsole(w io.Writer) *console { return &console{w, time.Now()} }

func (c *console) elapsed() string { return fmt.Sprintf("%.1f s", time.Since(c.start).Seconds()) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func (c *console) heading(number, of int, title string) {
	c.say("\n%d/%d %s  [%s]", number, of, title, c.elapsed())
}

func (c *console) say(format string, args ...any) { fmt.Fprintf(c.w, format+"\n", args...) }

// tell says something about the present step.
func (c *console) tell(format string, args ...any) { c.say(indent+format, args...) }

// command shows a command whose output follows.
func (c *console) command(line string) { c.say("\n%s$ %s", indent, line) }

// quote shows lines that others wrote, as they are.
func (c *console) quote(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		c.tell("%s", strings.TrimRight(line, " \n"))
	}
}

// Write quotes whole lines, such as those of a build.
func (c *console) Write(lines []byte) (int, error) {
	c.quote(string(lines))
	return len(lines), nil
}

// during runs something that may take long, says from time to time that it
// goes on, and how long it took.
func (c *console) during(what string, do func() error) error {
	begin := time.Now()
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		remind := time.NewTicker(remindEvery)
		defer remind.Stop()
		for {
			select {
			case <-end:
				return
			case <-remind.C:
				c.tell("... %s: %s so far", what, seconds(time.Since(begin)))
			}
		}
	}()
	err := do()
	close(end)
	<-ended
	if err == nil {
		c.tell("%s: %s", what, seconds(time.Since(begin)))
	}
	return err
}

// await waits for what must happen, but not longer than patience.
func (c *console) await(ctx context.Context, what string, wait func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := c.during(what, func() error { return wait(ctx) })
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("waited %s in vain for this: %s", patience, what)
	}
	return err
}
