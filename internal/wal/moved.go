package wal

import (
	"fmt"
	"iter"
)

// ReadMoved reads the records of files that Trim has taken from a log, and that are kept in another folder: from a position on, and up to
// the first record of the log itself, until. The folder and the keys are those of the options. From 0 on it begins with the first file
// that is there. If one is missing after that, or the one with the position, it ends with an error. Nothing is written, and the folder is
// not locked: its files may be removed while it reads, which is an error, too.
func ReadMoved(opt Options, from, until Position) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		l := &Log{opt: opt}
		stop := until - batchHeader
		list, err := l.moved(stop)
		if err == nil && from != 0 && from < until && (len(list) == 0 || list[0].start > from) {
			err = fmt.Errorf("%w: the file with position %d is gone", ErrNowhere, from)
		}
		for i := 0; i < len(list) && err == nil; i++ {
			end, more := stop, false
			if i+1 < len(list) {
				end = list[i+1].start
			}
			if more, err = l.readSegment(list[i], from, end, nil, yield); err == nil && !more {
				return
			}
		}
		if err != nil {
			yield(Record{}, err)
		}
	}
}

// moved are the files of the folder that begin before a position, in their order.
func (l *Log) moved(stop Position) (list []*segment, err error) {
	names, err := l.opt.FS.List()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !IsSegment(name) || StartOf(name) >= stop {
			continue
		}
		seg, err := readHeader(l.opt.FS, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, seg)
	}
	return list, sortSegments(list)
}
