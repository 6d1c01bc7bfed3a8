// Command gen writes the methods that turn Go structs into CBOR and back, so that
// a guest needs no reflection. It is meant for go:generate, in the file that
// declares the types:
//
//	//go:generate go run github.com/wasmactors/wasmactors/guest-sdk/gen -type Deposit,Withdraw
//
// writes deposit_cbor.go beside deposit.go, with MarshalCBOR and UnmarshalCBOR for
// both and for the structs of the package that they contain. docs/guests.md has
// the tags and the rules, docs/guide/messages.md versions, protocols and CDDL.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	types := flag.String("type", "", "names of the struct types, separated by commas")
	dir := flag.String("dir", ".", "directory of the package")
	output := flag.String("output", "", "file to write in that directory; - is standard output (default: the file with go:generate, or the first type, with _cbor.go)")
	cddl := flag.String("cddl", "", "file to write in that directory, too, with the types as CDDL (RFC 8610), for the key messages of a manifest")
	flag.Parse()
	if err := run(*dir, *types, *output, *cddl); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(dir, types, output, cddl string) error {
	var names []string
	for _, name := range strings.Split(types, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return errors.New("no types: say -type Name,Other")
	}
	target := output
	if target == "" || target == "-" {
		target = defaultOutput(names[0])
	}
	p, structs, protocols, err := read(dir, target, names)
	if err != nil {
		return err
	}
	for _, note := range narrow(structs) {
		fmt.Fprintln(os.Stderr, "gen: note:", note)
	}
	source, err := p.render(structs, protocols)
	if err != nil {
		return err
	}
	if cddl != "" {
		text, err := p.renderCDDL(structs)
		if err != nil {
			return err
		}
		if !filepath.IsAbs(cddl) {
			cddl = filepath.Join(dir, cddl)
		}
		if err := replace(cddl, text); err != nil {
			return err
		}
	}
	if output == "-" {
		_, err = os.Stdout.Write(source)
		return err
	}
	return replace(filepath.Join(dir, target), source)
}

// replace writes a file unless it holds that already.
func replace(path string, text []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	return os.WriteFile(path, text, 0o644)
}

func defaultOutput(first string) string {
	base := strings.ToLower(first)
	if file := os.Getenv("GOFILE"); file != "" {
		base = strings.TrimSuffix(file, ".go")
	}
	return base + "_cbor.go"
}

// generate makes the source of the file called target for the package in dir.
// What that file holds now is not looked at.
func generate(dir, target string, names []string) ([]byte, error) {
	p, structs, protocols, err := read(dir, target, names)
	if err != nil {
		return nil, err
	}
	return p.render(structs, protocols)
}

func read(dir, target string, names []string) (*source, []structType, []protocol, error) {
	p, err := load(dir, target)
	if err != nil {
		return nil, nil, nil, err
	}
	structs, protocols, err := p.collect(names)
	return p, structs, protocols, err
}
