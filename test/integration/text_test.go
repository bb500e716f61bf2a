package integration

import (
	"encoding/json"
	"strconv"
	"testing"
)

func marshal(t *testing.T, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func format(value float64) string { return strconv.FormatFloat(value, 'f', 3, 64) }

func atoi(t *testing.T, text string) int {
	t.Helper()
	value, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
