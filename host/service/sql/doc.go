// Package sql is the service for relational databases: queries with parameters, and transactions
// as one request.
//
// The manifest names databases, a grant says which of them an actor reads (ro) or writes (rw).
// SQLite is built in ([Service]); an embedder adds others by [Define].
//
// A guest's SQL is not trusted. Package sql runs one statement at a time, on connections that can
// only do what the grant allows: see guard.go for what SQLite is prevented from, and
// docs/services/sql.md for the bounds.
package sql
