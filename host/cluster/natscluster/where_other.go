//go:build !linux && !darwin

package natscluster

import "os"

// whereOf is the place of a lock on a file: nothing here says since when the machine runs, so that a lock proves nothing.
func whereOf(*os.File) (where, bool) { return where{}, false }
