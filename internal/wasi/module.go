// Package wasi serves WASI preview 1 to actors.
//
// All functions of preview 1 are exported, so every module links. What they can
// do is little, because a turn is a pure function of state, message and header:
//
//   - the clocks, all of them, show the turn's time and stand still during it;
//   - random bytes come from the actor's own stream;
//   - poll_oneoff never waits: every subscription is ready at once. The host is
//     told of guests that want to wait for a time, see [Host], and may refuse;
//   - standard output and error become log records, standard input is empty;
//   - files exist only under directories that are granted, see [Dir], and a guest
//     that uses them is no longer pure: what it has written stays if its turn
//     fails;
//   - there are no sockets, no signals, no links to be made, no file times to be
//     set: ENOTSUP or ENOSYS.
//
// What a guest passes in, pointers, lengths, descriptors, is checked before it is
// used, and what it can make the host do is bounded or paid for with fuel.
package wasi

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Module is the name under which guests import these functions.
const Module = "wasi_snapshot_preview1"

// Function describes one exported function.
type Function struct {
	Name    string
	Params  []api.ValueType
	Results []api.ValueType // one i32, the errno; nothing for proc_exit
}

// Functions lists all that is exported, in alphabetical order: every function of
// WASI preview 1.
func Functions() []Function {
	list := make([]Function, 0, len(functions))
	for _, f := range functions {
		list = append(list, Function{Name: f.name, Params: f.paramTypes(), Results: f.resultTypes()})
	}
	return list
}

// Instantiate puts the host module into r; it is done once per wazero runtime.
// Its functions find the actor that calls them with [FromContext]. They may be
// called only by modules that have a memory.
func Instantiate(ctx context.Context, r wazero.Runtime) (api.Module, error) {
	b := r.NewHostModuleBuilder(Module)
	for _, f := range functions {
		b = b.NewFunctionBuilder().
			WithGoModuleFunction(f.goFunc(), f.paramTypes(), f.resultTypes()).
			WithName(f.name).
			Export(f.name)
	}
	return b.Instantiate(ctx)
}

// function is one entry of the module. Its handler gets the arguments in s, as
// wazero passes them; the errno that it returns is the function's result.
type function struct {
	name   string
	params string // i: i32, I: i64
	cost   uint64 // fuel for the call as such
	call   func(h Host, m memory, s []uint64) errno
}

// What calls cost, in units of fuel of about half a nanosecond, on top of what
// the amount of data costs.
const (
	costCheap = 64        // answers from memory
	costFile  = 8 << 10   // a system call or some
	costSync  = 2_000_000 // waits for a disk
)

// What a byte costs is a division by these or, for random bytes, this many units.
const (
	bytesPerUnitFile = 2
	bytesPerUnitLog  = 1
	unitsPerRandom   = 2
)

func (f *function) goFunc() api.GoModuleFunc {
	call, cost := f.call, f.cost
	if f.name == "proc_exit" {
		return func(ctx context.Context, _ api.Module, s []uint64) { exit(FromContext(ctx), uint32(s[0])) }
	}
	return func(ctx context.Context, mod api.Module, s []uint64) {
		h := FromContext(ctx)
		if h == nil {
			s[0] = uint64(errnoNosys)
			return
		}
		h.Charge(cost)
		s[0] = uint64(call(h, memory{mod.Memory()}, s))
	}
}

func (f *function) paramTypes() []api.ValueType {
	types := make([]api.ValueType, len(f.params))
	for i, p := range f.params {
		types[i] = api.ValueTypeI32
		if p == 'I' {
			types[i] = api.ValueTypeI64
		}
	}
	return types
}

func (f *function) resultTypes() []api.ValueType {
	if f.name == "proc_exit" {
		return nil
	}
	return []api.ValueType{api.ValueTypeI32}
}

// functions is the module. The names, types and numbers are those of the
// specification's witx files.
var functions = []function{
	{"args_get", "ii", costCheap, argsGet},
	{"args_sizes_get", "ii", costCheap, argsSizesGet},
	{"clock_res_get", "ii", costCheap, clockResGet},
	{"clock_time_get", "iIi", costCheap, clockTimeGet},
	{"environ_get", "ii", costCheap, environGet},
	{"environ_sizes_get", "ii", costCheap, environSizesGet},
	{"fd_advise", "iIIi", costCheap, fdAdvise},
	{"fd_allocate", "iII", costCheap, fdOpenButUnsupported},
	{"fd_close", "i", costFile, fdClose},
	{"fd_datasync", "i", costCheap, fdSync},
	{"fd_fdstat_get", "ii", costCheap, fdFdstatGet},
	{"fd_fdstat_set_flags", "ii", costCheap, fdFdstatSetFlags},
	{"fd_fdstat_set_rights", "iII", costCheap, fdOpenButUnsupported},
	{"fd_filestat_get", "ii", costCheap, fdFilestatGet},
	{"fd_filestat_set_size", "iI", costCheap, fdFilestatSetSize},
	{"fd_filestat_set_times", "iIIi", costCheap, fdOpenButUnsupported},
	{"fd_pread", "iiiIi", costCheap, fdPread},
	{"fd_prestat_dir_name", "iii", costCheap, fdPrestatDirName},
	{"fd_prestat_get", "ii", costCheap, fdPrestatGet},
	{"fd_pwrite", "iiiIi", costCheap, fdPwrite},
	{"fd_read", "iiii", costCheap, fdRead},
	{"fd_readdir", "iiiIi", costCheap, fdReaddir},
	{"fd_renumber", "ii", costCheap, fdOpenButUnsupported},
	{"fd_seek", "iIii", costCheap, fdSeek},
	{"fd_sync", "i", costCheap, fdSync},
	{"fd_tell", "ii", costCheap, fdTell},
	{"fd_write", "iiii", costCheap, fdWrite},
	{"path_create_directory", "iii", costFile, pathCreateDirectory},
	{"path_filestat_get", "iiiii", costFile, pathFilestatGet},
	{"path_filestat_set_times", "iiiiIIi", costCheap, fdOpenButUnsupported},
	{"path_link", "iiiiiii", costCheap, fdOpenButUnsupported},
	{"path_open", "iiiiiIIii", costFile, pathOpen},
	{"path_readlink", "iiiiii", costFile, pathReadlink},
	{"path_remove_directory", "iii", costFile, pathRemoveDirectory},
	{"path_rename", "iiiiii", costFile, pathRename},
	{"path_symlink", "iiiii", costCheap, unsupported},
	{"path_unlink_file", "iii", costFile, pathUnlinkFile},
	{"poll_oneoff", "iiii", costCheap, pollOneoff},
	{"proc_exit", "i", costCheap, nil}, // see goFunc
	{"proc_raise", "i", costCheap, unknown},
	{"random_get", "ii", costCheap, randomGet},
	{"sched_yield", "", costCheap, schedYield},
	{"sock_accept", "iii", costCheap, unsupported},
	{"sock_recv", "iiiiii", costCheap, unsupported},
	{"sock_send", "iiiii", costCheap, unsupported},
	{"sock_shutdown", "ii", costCheap, unsupported},
}

// unsupported is a function that makes no sense here.
func unsupported(Host, memory, []uint64) errno { return errnoNotsup }

// unknown is a function that is not implemented.
func unknown(Host, memory, []uint64) errno { return errnoNosys }

// fdOpenButUnsupported makes no sense here, either, but a wrong descriptor is the
// better answer.
func fdOpenButUnsupported(h Host, _ memory, s []uint64) errno {
	fd := uint32(s[0])
	if fd > 2 && h.Files().get(fd) == nil {
		return errnoBadf
	}
	return errnoNotsup
}
