//go:build wasip1

// The plugin of the benchmarks: as its kit's own examples are written.
package main

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/extism/go-pdk"
)

// six is the struct of six fields, in the kit's own encoding.
type six struct {
	ID     uint64
	Name   string
	Amount int64
	Price  float64
	Active bool
	Tags   []string
}

// receive answers with the number in the first four bytes less one.
//
//go:wasmexport receive
func receive() int32 {
	b := pdk.Input()
	binary.BigEndian.PutUint32(b, binary.BigEndian.Uint32(b)-1)
	pdk.Output(b)
	return 0
}

//go:wasmexport record
func record() int32 {
	var s six
	if err := pdk.InputJSON(&s); err != nil {
		pdk.SetError(err)
		return 1
	}
	s.ID--
	if err := pdk.OutputJSON(&s); err != nil {
		pdk.SetError(err)
		return 1
	}
	return 0
}

//go:wasmexport crash
func crash() int32 { panic("crash") }

func main() {}

// users answers a request whose path is the first line and whose query the second one.
//
//go:wasmexport users
func users() int32 {
	path, query, _ := strings.Cut(pdk.InputString(), "\n")
	id, ok := strings.CutPrefix(path, "/users/")
	if !ok {
		panic("boom")
	}
	q, _ := strings.CutPrefix(query, "q=")
	pdk.OutputString(`{"id":` + strconv.Quote(id) + `,"q":` + strconv.Quote(q) + `}`)
	return 0
}
