//go:build wasip1

package main

import (
	"encoding/json"
	"strconv"
	"strings"
)

type order struct {
	ID    int            `json:"id"`
	Name  string         `json:"name"`
	Price float64        `json:"price"`
	Tags  []string       `json:"tags"`
	Extra map[string]any `json:"extra"`
}

// parseJSON reads a list of orders n times, once into structs and once into any,
// and writes it again.
func parseJSON(n int) uint32 {
	var text strings.Builder
	text.WriteByte('[')
	for i := range 20 {
		if i > 0 {
			text.WriteByte(',')
		}
		s := strconv.Itoa(i)
		text.WriteString(`{"id":` + s + `,"name":"order ` + s + ` \u00e9\n","price":` + s + `.25e1,"tags":["a","bc","def` + s + `"],"extra":{"deep":[[1,2],{"x":null}],"ok":true}}`)
	}
	text.WriteByte(']')
	raw, sum := []byte(text.String()), uint32(0)
	for range n {
		var orders []order
		var loose any
		if json.Unmarshal(raw, &orders) != nil || json.Unmarshal(raw, &loose) != nil {
			panic("the text is not JSON")
		}
		back, err := json.Marshal(orders)
		if err != nil {
			panic(err)
		}
		for _, b := range back {
			sum = mix(sum, uint32(b))
		}
		sum = mix(sum, uint32(len(loose.([]any))))
	}
	return sum
}
