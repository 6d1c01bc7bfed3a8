// Command plot draws the delays that the supervisors of a bundle choose, as SVG. It
// reads the manifest and asks supervision/backoff, so that the picture shows what a
// run does.
//
//	plot -bundle samples/flaky -output delays.svg
package main

import (
	"flag"
	"fmt"
	"os"
)

//go:generate go run . -bundle .. -output ../delays.svg

func main() {
	folder := flag.String("bundle", "samples/flaky", "folder of the bundle")
	output := flag.String("output", "", "file to write; standard output if empty")
	flag.Parse()
	picture, err := picture(*folder)
	if err == nil && *output != "" {
		err = os.WriteFile(*output, picture, 0o644)
	} else if err == nil {
		_, err = os.Stdout.Write(picture)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}
