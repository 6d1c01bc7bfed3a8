// Package mapped holds one of everything that guest-sdk/gen can write; the tests
// compare the generated code with another codec.
package mapped

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

//go:generate go -C ../../../../guest-sdk run ./gen -dir ../host/typed/testdata/mapped -output types_cbor.go -type Everything,Numbered,Mixed,Empty,Wide,Required,Moment,Tree,Usual -cddl types.cddl

// Color is a named integer.
type Color uint8

// Name is a named text.
type Name string

// Names is a named slice.
type Names []Name

// Blob is named bytes.
type Blob []byte

// Everything has a field of every kind.
type Everything struct {
	Bool    bool
	Int     int     `cbor:"int"`
	Int8    int8    `cbor:"i8"`
	Int16   int16   `cbor:"i16"`
	Int32   int32   `cbor:"i32"`
	Int64   int64   `cbor:"i64"`
	Uint    uint    `cbor:"uint"`
	Uint8   uint8   `cbor:"u8"`
	Uint16  uint16  `cbor:"u16"`
	Uint32  uint32  `cbor:"u32"`
	Uint64  uint64  `cbor:"u64"`
	Float32 float32 `cbor:"f32"`
	Float64 float64 `json:"f64"`
	Text    string
	Bytes   []byte
	Digest  [4]byte
	Color   Color
	Name    Name
	Blob    Blob
	Wait    time.Duration

	Names   Names
	Numbers []int32
	Grid    [2][3]int16
	Lists   [][]string
	Inner   Inner
	Inners  []Inner

	ByName   map[string]Inner
	ByColor  map[Color]string
	BySigned map[int32]bool
	Nested   map[Name]map[int8][]byte

	Maybe     *int64
	MaybeText *Name
	MaybeOne  *Inner
	Sparse    []*Inner
	MaybeList *[]uint16

	NoText  string           `cbor:",omitempty"`
	NoInt   int              `cbor:"no-int,omitempty"`
	NoBool  bool             `cbor:",omitempty"`
	NoList  []int            `cbor:",omitempty"`
	NoMap   map[string]int64 `cbor:",omitempty"`
	NoInner *Inner           `cbor:",omitempty"`
	NoFloat float64          `cbor:",omitempty"`

	Base
	hidden  int
	Ignored int `cbor:"-"`
}

// Hidden is what Everything does not show.
func (e *Everything) Hidden() int { return e.hidden }

// Base is embedded.
type Base struct {
	ID   uint64 `cbor:"id"`
	Text string // hidden by Everything.Text
	Deep
}

// Deep is embedded in what is embedded.
type Deep struct{ Depth int16 }

// Inner is nested.
type Inner struct {
	A int    `cbor:"a"`
	B string `cbor:"b,omitempty"`
	C []int  `cbor:"c"`
}

// Numbered has integers as keys.
type Numbered struct {
	Zero  string           `cbor:"0,keyasint"`
	Third int64            `cbor:"300,keyasint"`
	Minus []byte           `cbor:"-1,keyasint,omitempty"`
	Last  map[uint64]int64 `cbor:"-400,keyasint"`
}

// Mixed has both kinds of keys.
type Mixed struct {
	One  int    `cbor:"1,keyasint"`
	Text string `cbor:"one"`
}

// Empty has no fields.
type Empty struct{}

// Required must be complete.
type Required struct {
	A int `cbor:"a,required"`
	B int `cbor:"b,required"`
	C int `cbor:"c"`
}

// Moment has times, which the other codec writes with tags.
type Moment struct {
	At    time.Time  `cbor:"at"`
	Maybe *time.Time `cbor:"maybe"`
	Last  time.Time  `cbor:"last,omitempty"`
	Money Cents      `cbor:"money"`
}

// Cents writes itself: as a text.
type Cents int64

// MarshalCBOR writes the sign in words.
func (c Cents) MarshalCBOR(w *abi.Writer) {
	w.Array(2)
	w.Bool(c < 0)
	w.Int(max(int64(c), -int64(c)))
}

// UnmarshalCBOR reads what MarshalCBOR writes.
func (c *Cents) UnmarshalCBOR(r *abi.Reader) {
	if r.Array() != 2 {
		r.Fail(abi.ErrArity)
	}
	*c = 1
	if r.Bool() {
		*c = -1
	}
	*c *= Cents(r.Int())
}

// Tree contains itself.
type Tree struct {
	Value int32           `cbor:"v"`
	Kids  []Tree          `cbor:"k,omitempty"`
	Named map[string]Twig `cbor:"n,omitempty"`
}

// Twig leads back to Tree.
type Twig struct {
	Tree *Tree `cbor:"t"`
}

// Usual has the types that guests of standard Go read and write by a table: see abi.Place.
type Usual struct {
	U8    uint8    `cbor:"u8"`
	U16   uint16   `cbor:"u16"`
	U32   uint32   `cbor:"u32"`
	U64   uint64   `cbor:"u64"`
	I8    int8     `cbor:"i8"`
	I16   int16    `cbor:"i16"`
	I32   int32    `cbor:"i32"`
	I64   int64    `cbor:"i64"`
	Word  int      `cbor:"-1,keyasint"`
	Yes   bool     `cbor:"7,keyasint"`
	Price float64  `cbor:"the price of one"`
	Text  Name     `cbor:"Text"`
	Blob  Blob     `cbor:"Blob"`
	Tags  []string `cbor:"Tags"`
	More  []string `cbor:"300,keyasint"`
}

// Wide has more keys than a word has bits.
type Wide struct {
	F00, F01, F02, F03, F04, F05, F06, F07, F08, F09, F10, F11, F12, F13, F14, F15, F16, F17, F18, F19 uint8
	F20, F21, F22, F23, F24, F25, F26, F27, F28, F29, F30, F31, F32, F33, F34, F35, F36, F37, F38, F39 uint8
	F40, F41, F42, F43, F44, F45, F46, F47, F48, F49, F50, F51, F52, F53, F54, F55, F56, F57, F58, F59 uint8
	F60, F61, F62, F63, F64, F65, F66, F67, F68, F69                                                   uint8
}
