package main

import (
	"bytes"
	"errors"
	"strconv"
)

// Bounds of a command.
const (
	maxArgs  = 64
	maxBulk  = 16 << 10
	maxLine  = 1 << 10
	maxBytes = 32 << 10 // of all its arguments: they have to fit into a message
)

var errProtocol = errors.New("Protocol error")

// parse reads a command, an array of strings or a line of words. used is 0 if it is not complete. args are parts of b, and appended to dst.
func parse(b []byte, dst [][]byte) (args [][]byte, used int, err error) {
	if len(b) == 0 {
		return dst, 0, nil
	}
	if b[0] != '*' {
		line, n, err := lineOf(b)
		if n == 0 || err != nil {
			return dst, 0, err
		}
		words := bytes.Fields(line)
		if len(words) > maxArgs {
			return dst, 0, errProtocol
		}
		return append(dst, words...), n, nil
	}
	count, at, err := number(b[1:], maxArgs)
	if at == 0 || err != nil {
		return dst, 0, err
	}
	at++
	total := 0
	for ; count > 0; count-- {
		if at == len(b) {
			return dst, 0, nil
		}
		if b[at] != '$' {
			return dst, 0, errProtocol
		}
		size, n, err := number(b[at+1:], maxBulk)
		if n == 0 || err != nil {
			return dst, 0, err
		}
		at += 1 + n
		if total += size; total > maxBytes {
			return dst, 0, errProtocol
		}
		if len(b)-at < size+2 {
			return dst, 0, nil
		}
		if b[at+size] != '\r' || b[at+size+1] != '\n' {
			return dst, 0, errProtocol
		}
		dst = append(dst, b[at:at+size])
		at += size + 2
	}
	return dst, at, nil
}

// lineOf is a line without its end, and its length with it; 0 if it is not complete.
func lineOf(b []byte) ([]byte, int, error) {
	i := bytes.IndexByte(b, '\n')
	switch {
	case i < 0 && len(b) > maxLine, i > maxLine:
		return nil, 0, errProtocol
	case i < 0:
		return nil, 0, nil
	}
	return bytes.TrimSuffix(b[:i], []byte{'\r'}), i + 1, nil
}

// number reads a line with a number from 0 to most; n is its length, 0 if it is not complete.
func number(b []byte, most int) (v, n int, err error) {
	for i, c := range b {
		switch {
		case c >= '0' && c <= '9' && i < 9:
			v = 10*v + int(c-'0')
		case c == '\r' && i > 0 && i+1 < len(b) && b[i+1] == '\n':
			if v > most {
				return 0, 0, errProtocol
			}
			return v, i + 2, nil
		case c == '\r' && i > 0 && i+1 == len(b):
			return 0, 0, nil
		default:
			return 0, 0, errProtocol
		}
	}
	return 0, 0, nil
}

func appendBulk(dst, b []byte) []byte {
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(b)), 10)
	dst = append(dst, "\r\n"...)
	dst = append(dst, b...)
	return append(dst, "\r\n"...)
}

func appendInt(dst []byte, n int64) []byte {
	dst = append(dst, ':')
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, "\r\n"...)
}

func appendError(dst []byte, text string) []byte {
	return append(append(append(dst, "-ERR "...), text...), "\r\n"...)
}
