package bundle

import (
	"cmp"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/runtime"
	"go.yaml.in/yaml/v3"
)

// limits of an actor, with those that are the module's.
type limits struct {
	host.Limits
	stack, table uint32
}

func (c *checker) limits(n *yaml.Node, base limits) limits {
	l := base
	l.Memory = bytesOf(n, "memory", l.Memory)
	l.Fuel = countOf(n, "fuel", l.Fuel)
	l.Deadline = durationOf(n, "deadline", l.Deadline)
	l.stack = uint32(bytesOf(n, "stack", uint64(l.stack)))
	l.table = uint32(countOf(n, "table", uint64(l.table)))
	l.Outbox = bytesOf(n, "outbox", l.Outbox)
	l.Mailbox = int(countOf(n, "mailbox", uint64(l.Mailbox)))
	l.MailboxBytes = int64(bytesOf(n, "mailbox-bytes", uint64(l.MailboxBytes)))
	l.Children = int(countOf(n, "children", uint64(l.Children)))
	l.Timers = int(countOf(n, "timers", uint64(l.Timers)))
	l.Watches = int(countOf(n, "watches", uint64(l.Watches)))
	l.Asks = int(countOf(n, "asks", uint64(l.Asks)))
	l.Stash = int(countOf(n, "stash", uint64(l.Stash)))
	return l
}

// moduleLimits reads modules.NAME.limits.
func (c *checker) moduleLimits(n *yaml.Node, mod *Module) {
	mod.Size, mod.Data = bytesOf(n, "size", 0), bytesOf(n, "data", 0)
	mod.Globals = uint32(countOf(n, "globals", 0))
	mod.Tables, mod.Entries = uint32(countOf(n, "tables", 0)), uint32(countOf(n, "table-entries", 0))
	mod.Types, mod.Functions = uint32(countOf(n, "types", 0)), uint32(countOf(n, "functions", 0))
	mod.Segments, mod.Elements = uint32(countOf(n, "segments", 0)), uint32(countOf(n, "elements", 0))
	mod.CompileSteps, mod.CompileBytes = countOf(n, "compile-steps", 0), bytesOf(n, "compile-bytes", 0)
	mod.Memory, mod.Stack, mod.Table = bytesOf(n, "memory", 0), uint32(bytesOf(n, "stack", 0)), uint32(countOf(n, "table", 0))
	mod.Instances = int(countOf(n, "instances", 0))
	mod.InitFuel, mod.InitDeadline = countOf(n, "init-fuel", 0), durationOf(n, "init-deadline", 0)
	mod.CompileTime, mod.CompileMemory = durationOf(n, "compile-time", 0), bytesOf(n, "compile-memory", 0)
	mod.set = shared{mod.Memory != 0, mod.Stack != 0, mod.Table != 0}
}

// shared says which of the limits that actors share were set for their module.
type shared struct{ memory, stack, table bool }

// share makes the module's limits suit an actor: the largest of its actors'
// limits counts, unless the module has its own. Then an actor that asks for more
// is a mistake.
func (c *checker) share(m *Manifest, a *Actor, n *yaml.Node) {
	for i := range m.Modules {
		mod := &m.Modules[i]
		if mod.Name != a.Module {
			continue
		}
		memory := cmp.Or(a.Limits.Memory, uint64(runtime.DefaultMemoryLimit))
		stack := cmp.Or(a.Stack, uint32(runtime.DefaultStackLimit))
		table := cmp.Or(a.Table, uint32(runtime.DefaultTableLimit))
		if !mod.set.memory {
			mod.Memory = max(mod.Memory, memory)
		} else if v := at(n, "memory"); v != nil && memory > mod.Memory {
			c.at(v, "limits.memory of actor %s is more than modules.%s.limits.memory", a.Name, mod.Name)
		}
		if !mod.set.stack {
			mod.Stack = max(mod.Stack, stack)
		} else if v := at(n, "stack"); v != nil && stack > mod.Stack {
			c.at(v, "limits.stack of actor %s is more than modules.%s.limits.stack", a.Name, mod.Name)
		}
		if !mod.set.table {
			mod.Table = max(mod.Table, table)
		} else if v := at(n, "table"); v != nil && table > mod.Table {
			c.at(v, "limits.table of actor %s is more than modules.%s.limits.table", a.Name, mod.Name)
		}
	}
}
