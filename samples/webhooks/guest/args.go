package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// settings are the args of the manifest: numbers, and texts of numbers and durations, as variables are texts.
type settings map[string]string

// UnmarshalCBOR implements actor.Decoder.
func (s *settings) UnmarshalCBOR(r *abi.Reader) {
	*s = settings{}
	for n := r.Map(); n > 0 && r.OK(); n-- {
		key := r.Text()
		switch r.Peek() {
		case abi.TypeUint:
			(*s)[key] = strconv.FormatUint(r.Uint(), 10)
		default:
			(*s)[key] = r.Text()
		}
	}
}

// number is a whole number from 1 to most.
func (s settings) number(key string, most int64) (int64, error) {
	n, err := strconv.ParseInt(s[key], 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, errors.New("args." + key + " is " + strconv.Quote(s[key]) + ", and must be a whole number from 1 to " + strconv.FormatInt(most, 10))
	}
	return n, nil
}

// duration is a duration from 1 ms to most.
func (s settings) duration(key string, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(s[key])
	if err != nil || d < time.Millisecond || d > most {
		return 0, errors.New("args." + key + " is " + strconv.Quote(s[key]) + ", and must be a duration such as 1m30s, from 1ms to " + most.String())
	}
	return d, nil
}
