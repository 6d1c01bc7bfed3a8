package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"os"
	"testing"
)

// The picture in the tree is what the manifest and the curves give today.
func TestPictureIsCurrent(t *testing.T) {
	now, err := picture("..")
	if err != nil {
		t.Fatal(err)
	}
	had, err := os.ReadFile("../delays.svg")
	if err != nil || !bytes.Equal(had, now) {
		t.Errorf("delays.svg is not current: run go generate ./samples/flaky/plot (%v)", err)
	}
	d := xml.NewDecoder(bytes.NewReader(now))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// What is drawn are the delays that the sources give as examples, scaled to
// milliseconds.
func TestPointsAreThoseOfTheSources(t *testing.T) {
	all, err := curves("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name              string
		n                 int
		least, mean, most float64
	}{
		{"xebia", 1, 0, 0.5, 1},
		{"xebia", 5, 0, 9.5, 31},
		{"xebia", 9, 0, 101.3, 511},
		{"xebia", 10, 0, 0, 0}, // the ceiling
		{"xebia", 11, 0, 0.5, 1},
		{"rxjava", 3, 38.25, 45, 51.75},
		{"rxjava", 10, 425, 500, 575},
		{"zaqar-linear", 10, 234.5, 234.5, 234.5},
		{"zaqar-arithmetic", 9, 209, 209, 209},
		{"zaqar-geometric", 5, 28.949306, 28.949306, 28.949306},
		{"zaqar-exponential", 9, 167.612464, 167.612464, 167.612464},
		{"actor-ts", 6, 51.2, 64, 76.8},
		{"actor-ts", 7, 80, 100, 120},
		{"akka", 2, 6, 6.6, 7.2},
		{"akka", 12, 30, 33, 36},
	} {
		p := all[c.name].points[c.n-1]
		if !near(p.least, c.least) || !near(p.mean, c.mean) || !near(p.most, c.most) {
			t.Errorf("%s after failure %d: %+v, want %+v", c.name, c.n, p, c)
		}
	}
	if n := len(all["rxjava"].points); n != 10 {
		t.Errorf("rxjava gives up after ten failures, %d are drawn", n)
	}
	if total := all["zaqar-arithmetic"].total(10); !near(total.mean, 985) {
		t.Errorf("the sum is %+v", total)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-5*math.Max(1, math.Abs(b)) }

func TestAnotherBundleIsRefused(t *testing.T) {
	if _, err := picture("../../hello"); err == nil {
		t.Error("a bundle without the supervisors was drawn")
	}
}
