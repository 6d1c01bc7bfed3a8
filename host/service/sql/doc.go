// Package sql is the service of relational databases: queries with parameters, and
// transactions as one request.
//
// The manifest names databases, a grant says which of them an actor reads (ro) or writes (rw).
// SQLite is built in ([Service]); an embedder adds others by [Define].
//
// What a guest sends is SQL of a stranger. Package sql lets one statement at a time through, on
// connections that cannot do what the grant does not say: see guard.go for what SQLite is
// kept from, and docs/services/sql.md for the bounds.
package sql
