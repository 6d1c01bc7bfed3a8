//go:build !linux

package main

import "errors"

// pages measures private mappings of images, which only Linux has.
func pages(*lab) error { return errors.New("only on Linux") }
