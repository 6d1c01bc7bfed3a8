// Command large links much of the standard library, as a large guest does.
package main

import (
	"compress/gzip"
	"crypto/tls"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"go/parser"
	"go/token"
	"go/types"
	"html/template"
	"image/jpeg"
	"image/png"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
)

//go:wasmexport wasmactors_init
func initialise() int32 { return 0 }

//go:wasmexport wasmactors_turn
func turn(n int32) int32 {
	_ = template.Must(template.New("x").Parse("a{{.}}")).Execute(os.Stdout, n)
	fmt.Println(regexp.MustCompile("a+b").FindString("aab"), json.Valid(nil), http.StatusText(int(n)), tls.VersionName(uint16(n)))
	s := httptest.NewServer(nil)
	_, _ = http.Get(s.URL)
	_, _ = parser.ParseFile(token.NewFileSet(), "", "", 0)
	_, _ = (&types.Config{}).Check("", token.NewFileSet(), nil, nil)
	w := gzip.NewWriter(os.Stdout)
	_ = xml.NewEncoder(w).Encode(n)
	i, _ := png.Decode(os.Stdin)
	_ = jpeg.Encode(w, i, nil)
	_ = gob.NewEncoder(w).Encode(big.NewInt(int64(n)))
	return 0
}

func main() {}
