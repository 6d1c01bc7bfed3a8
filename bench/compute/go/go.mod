module computeguest

go 1.24
