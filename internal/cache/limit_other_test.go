//go:build !linux

package cache

import "errors"

func limitFiles(int64) error { return errors.ErrUnsupported }
