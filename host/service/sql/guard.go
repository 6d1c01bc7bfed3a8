package sql

import (
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// What a guest's statement may do on a connection to SQLite. The rules are checked when a
// statement is compiled, including its views, triggers and virtual tables.

// Limits of SQLite that no setting changes; see https://sqlite.org/limits.html.
const (
	mostColumns   = 256     // of a result, a table or an index
	mostDepth     = 200     // of an expression
	mostCompound  = 64      // terms of UNION and its like
	mostOps       = 100_000 // of a statement's program
	mostArguments = 64      // of a function
	mostTriggers  = 16      // nested
	mostParse     = 200     // of the parser's stack
)

// guard restricts a connection, before a guest's first statement.
func guard(c *sqlite3.Conn, s *Source) error {
	for id, v := range map[sqlite3.LimitCategory]int64{
		sqlite3.LIMIT_LENGTH:          s.Value,
		sqlite3.LIMIT_SQL_LENGTH:      max(int64(s.Statement), 4096), // of the schema's statements, too
		sqlite3.LIMIT_COLUMN:          mostColumns,
		sqlite3.LIMIT_EXPR_DEPTH:      mostDepth,
		sqlite3.LIMIT_COMPOUND_SELECT: mostCompound,
		sqlite3.LIMIT_VDBE_OP:         mostOps,
		sqlite3.LIMIT_FUNCTION_ARG:    mostArguments,
		sqlite3.LIMIT_ATTACHED:        0,
		sqlite3.LIMIT_VARIABLE_NUMBER: int64(s.Params),
		sqlite3.LIMIT_TRIGGER_DEPTH:   mostTriggers,
		sqlite3.LIMIT_WORKER_THREADS:  0,
		sqlite3.LIMIT_PARSER_DEPTH:    mostParse,
	} {
		c.Limit(id, int(v))
	}
	for op, v := range map[sqlite3.DBConfig]bool{
		sqlite3.DBCONFIG_DEFENSIVE:       true,
		sqlite3.DBCONFIG_WRITABLE_SCHEMA: false,
		sqlite3.DBCONFIG_TRUSTED_SCHEMA:  false,
		sqlite3.DBCONFIG_ENABLE_FKEY:     true,
	} {
		if _, err := c.Config(op, v); err != nil {
			return err
		}
	}
	return nil
}

// readablePragmas only describe a schema.
var readablePragmas = map[string]bool{
	"table_info": true, "table_xinfo": true, "table_list": true,
	"index_list": true, "index_info": true, "index_xinfo": true, "foreign_key_list": true,
}

// deniedFunctions take time quadratic in their arguments without being interruptible, or tell
// about the host.
var deniedFunctions = map[string]bool{
	"json_patch": true, "jsonb_patch": true,
	"load_extension": true, "readfile": true, "writefile": true, "edit": true,
	"fts5": true, "fts5_source_id": true, "fts5_locale": true, "fts5_get_locale": true, "fts5_insttoken": true,
	"sqlite_log": true, "sqlite_source_id": true,
}

// deniedPrefixes are prefixes of functions of modules whose tables cannot be made.
var deniedPrefixes = []string{"geopoly_", "rtree", "fts3", "sqlite_compileoption_"}

// allowed says what a statement may do. write says whether the connection may write.
func allowed(write bool, action sqlite3.AuthorizerActionCode, third, fourth, schema string) bool {
	if (isKeptTable(third) || isKeptTable(fourth)) && action != sqlite3.AUTH_ANALYZE {
		return false
	}
	switch action {
	case sqlite3.AUTH_SELECT, sqlite3.AUTH_READ, sqlite3.AUTH_RECURSIVE:
		return true
	case sqlite3.AUTH_FUNCTION:
		name := strings.ToLower(fourth)
		for _, p := range deniedPrefixes {
			if strings.HasPrefix(name, p) {
				return false
			}
		}
		return !deniedFunctions[name]
	case sqlite3.AUTH_PRAGMA:
		return readablePragmas[strings.ToLower(third)]
	case sqlite3.AUTH_INSERT, sqlite3.AUTH_UPDATE, sqlite3.AUTH_DELETE,
		sqlite3.AUTH_CREATE_TABLE, sqlite3.AUTH_DROP_TABLE, sqlite3.AUTH_ALTER_TABLE,
		sqlite3.AUTH_CREATE_INDEX, sqlite3.AUTH_DROP_INDEX, sqlite3.AUTH_REINDEX, sqlite3.AUTH_ANALYZE,
		sqlite3.AUTH_CREATE_VIEW, sqlite3.AUTH_DROP_VIEW, sqlite3.AUTH_CREATE_TRIGGER, sqlite3.AUTH_DROP_TRIGGER:
		return write && schema != "temp"
	}
	// Transactions and savepoints are the service's. Virtual tables have their own code and
	// files. Temporary objects belong to a connection, which others use next.
	return false
}

// actionName describes an action for people.
func actionName(action sqlite3.AuthorizerActionCode, third, fourth string) string {
	switch action {
	case sqlite3.AUTH_PRAGMA:
		return "PRAGMA " + third
	case sqlite3.AUTH_FUNCTION:
		return "the function " + fourth
	case sqlite3.AUTH_ATTACH, sqlite3.AUTH_DETACH:
		return "ATTACH, DETACH and VACUUM"
	case sqlite3.AUTH_TRANSACTION, sqlite3.AUTH_SAVEPOINT:
		return "a transaction of its own (see the op tx)"
	case sqlite3.AUTH_CREATE_VTABLE, sqlite3.AUTH_DROP_VTABLE:
		return "a virtual table"
	case sqlite3.AUTH_CREATE_TEMP_INDEX, sqlite3.AUTH_CREATE_TEMP_TABLE, sqlite3.AUTH_CREATE_TEMP_TRIGGER, sqlite3.AUTH_CREATE_TEMP_VIEW,
		sqlite3.AUTH_DROP_TEMP_INDEX, sqlite3.AUTH_DROP_TEMP_TABLE, sqlite3.AUTH_DROP_TEMP_TRIGGER, sqlite3.AUTH_DROP_TEMP_VIEW:
		return "what is temporary"
	}
	return "a change of " + third
}

// restOf checks what follows a statement: an error unless it is only spaces, semicolons and
// comments.
func restOf(tail string) bool {
	for len(tail) > 0 {
		switch {
		case strings.IndexByte(" \t\r\n\f;", tail[0]) >= 0:
			tail = tail[1:]
		case strings.HasPrefix(tail, "--"):
			_, after, _ := strings.Cut(tail, "\n")
			tail = after
		case strings.HasPrefix(tail, "/*"):
			_, after, _ := strings.Cut(tail[2:], "*/")
			tail = after
		default:
			return true
		}
	}
	return false
}
