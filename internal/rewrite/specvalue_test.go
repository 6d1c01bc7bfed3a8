package rewrite

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// specValue is an argument or what is expected of a result.
type specValue struct {
	Type     string
	LaneType string `json:"lane_type"`
	Value    json.RawMessage
}

// words are a value as numbers, of 64 bits each: for a vector two, or a pattern
// of a NaN.
func (v *specValue) words() ([]string, error) {
	if v.Type != "v128" {
		var s string
		if err := json.Unmarshal(v.Value, &s); err != nil {
			return nil, fmt.Errorf("%w: %v", errBeyond, err)
		}
		if v.Type == "externref" || v.Type == "funcref" {
			if s == "null" {
				return []string{"0"}, nil
			}
			n, err := strconv.ParseUint(s, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("%w: a reference %q", errBeyond, s)
			}
			return []string{strconv.FormatUint(n+1, 10)}, nil // 0 is null
		}
		return []string{s}, nil
	}
	var lanes []string
	if err := json.Unmarshal(v.Value, &lanes); err != nil {
		return nil, fmt.Errorf("%w: %v", errBeyond, err)
	}
	width := 128 / len(lanes)
	var words [2]uint64
	for i, lane := range lanes {
		n, err := strconv.ParseUint(lane, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: lane %s", errBeyond, lane)
		}
		words[i*width/64] |= n << (i * width % 64)
	}
	return []string{strconv.FormatUint(words[0], 10), strconv.FormatUint(words[1], 10)}, nil
}

// specResults compares what a function has returned.
func specResults(got []uint64, want []specValue) error {
	for _, v := range want {
		n := 1
		if v.Type == "v128" {
			n = 2
		}
		if len(got) < n {
			return errors.New("too few results")
		}
		if err := v.matches(got[:n]); err != nil {
			return err
		}
		got = got[n:]
	}
	if len(got) > 0 {
		return errors.New("too many results")
	}
	return nil
}

func (v *specValue) matches(got []uint64) error {
	lanes := []string{""}
	width, t := 64, v.Type
	if v.Type == "v128" {
		if err := json.Unmarshal(v.Value, &lanes); err != nil {
			return fmt.Errorf("%w: %v", errBeyond, err)
		}
		width, t = 128/len(lanes), v.LaneType
	} else {
		words, err := v.words()
		if err != nil {
			return err
		}
		lanes[0] = words[0]
		if t == "i32" || t == "f32" {
			width = 32
		}
	}
	for i, lane := range lanes {
		value := got[i*width/64] >> (i * width % 64) & (1<<width - 1)
		if width == 64 {
			value = got[i]
		}
		if strings.HasPrefix(lane, "nan:") {
			quiet := uint64(0x7ff8000000000000)
			if t == "f32" {
				quiet = 0x7fc00000
			}
			sign := uint64(1) << (bits.Len64(quiet))
			if value&quiet != quiet || lane == "nan:canonical" && value&^sign != quiet {
				return fmt.Errorf("%#x, want %s", value, lane)
			}
			continue
		}
		want, err := strconv.ParseUint(lane, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: %v", errBeyond, err)
		}
		if value != want {
			return fmt.Errorf("%#x, want %#x", value, want)
		}
	}
	return nil
}
