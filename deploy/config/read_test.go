package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryKeyIsRead: a key that nobody reads is a promise nobody keeps. Checks and defaults do not count as reading.
func TestEveryKeyIsRead(t *testing.T) {
	t.Parallel()
	r := reader{
		sections: map[string]structName{}, kept: map[string]map[string]structName{}, become: map[structName]structName{}, read: map[field]bool{},
	}
	c := Defaults()
	r.name(reflect.TypeOf(c))
	for range 2 { // what is kept where is known after the first time
		require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			return r.file(file)
		}))
	}
	var unread []string
	for _, k := range keysOf(&c) {
		owner := structName{strings.TrimPrefix(k.owner.PkgPath(), "msgexchange/"), k.owner.Name()}
		if !r.read[field{owner, k.field.Name}] && !r.read[field{r.become[owner], k.field.Name}] {
			unread = append(unread, k.name)
		}
	}
	require.Empty(t, unread)
}

// structName is a struct of settings: the folder of its package, and its name.
type structName struct{ folder, name string }

type field struct {
	of   structName
	name string
}

// reader finds in source text, without types, which settings are read: x.F, where x is a receiver or a parameter of a struct
// of settings, a variable that was given one, or ends in the name under which a struct of settings is kept.
type reader struct {
	sections map[string]structName            // by the name of the field that holds them
	kept     map[string]map[string]structName // by folder and the name of a struct's field that holds them
	become   map[structName]structName        // a struct of another package into which a section is converted
	read     map[field]bool
}

// name learns the names of the sections of a struct, all the way down.
func (r *reader) name(t reflect.Type) {
	for i := range t.NumField() {
		if f := t.Field(i); isSection(f.Type) {
			r.sections[f.Name] = structName{strings.TrimPrefix(f.Type.PkgPath(), "msgexchange/"), f.Type.Name()}
			r.name(f.Type)
		}
	}
}

func (r *reader) file(name string) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	folder, err := filepath.Rel(root, filepath.Dir(name))
	if err != nil {
		return err
	}
	imports := map[string]string{} // name -> folder
	for _, i := range file.Imports {
		full, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return err
		}
		imports[path.Base(full)] = strings.TrimPrefix(full, "msgexchange/")
		if i.Name != nil {
			imports[i.Name.Name] = strings.TrimPrefix(full, "msgexchange/")
		}
	}
	r.structs(file, filepath.ToSlash(folder), imports)
	for _, d := range file.Decls {
		f, isFunc := d.(*ast.FuncDecl)
		if isFunc && f.Body != nil && f.Name.Name != "Validate" && !strings.HasPrefix(strings.ToLower(f.Name.Name), "default") {
			r.function(f, filepath.ToSlash(folder), imports)
		}
	}
	return nil
}

// structs learns which structs of a package keep settings.
func (r *reader) structs(file *ast.File, folder string, imports map[string]string) {
	if r.kept[folder] == nil {
		r.kept[folder] = map[string]structName{}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, f := range s.Fields.List {
			for _, name := range f.Names {
				if holds := typeOf(f.Type, folder, imports); strings.HasSuffix(holds.name, "Config") || holds.folder == "deploy/config" {
					r.kept[folder][name.Name] = holds
				}
			}
		}
		return true
	})
}

func (r *reader) function(f *ast.FuncDecl, folder string, imports map[string]string) {
	known := map[string]structName{} // variable -> what it holds
	for _, list := range []*ast.FieldList{f.Recv, f.Type.Params} {
		if list == nil {
			continue
		}
		for _, p := range list.List {
			for _, name := range p.Names {
				known[name.Name] = typeOf(p.Type, folder, imports)
			}
		}
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if name, ok := left.(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) {
					if holds, ok := r.holds(folder, n.Rhs[i], known); ok {
						known[name.Name] = holds
					}
				}
			}
		case *ast.CallExpr:
			if to, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) == 1 {
				if holds, ok := r.holds(folder, n.Args[0], known); ok {
					r.become[holds] = typeOf(to, folder, imports)
				}
			}
		case *ast.SelectorExpr:
			if holds, ok := r.holds(folder, n.X, known); ok {
				r.read[field{holds, n.Sel.Name}] = true
			}
		}
		return true
	})
}

// typeOf names the struct of a receiver or parameter.
func typeOf(e ast.Expr, folder string, imports map[string]string) structName {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeOf(e.X, folder, imports)
	case *ast.Ident:
		return structName{folder, e.Name}
	case *ast.SelectorExpr:
		if pkg, ok := e.X.(*ast.Ident); ok {
			return structName{imports[pkg.Name], e.Sel.Name}
		}
	}
	return structName{}
}

// holds says which struct of settings an expression is.
func (r *reader) holds(folder string, e ast.Expr, known map[string]structName) (structName, bool) {
	switch e := e.(type) {
	case *ast.Ident:
		s, ok := known[e.Name]
		return s, ok
	case *ast.SelectorExpr:
		if s, ok := r.kept[folder][e.Sel.Name]; ok {
			return s, ok
		}
		s, ok := r.sections[e.Sel.Name]
		return s, ok
	case *ast.UnaryExpr:
		return r.holds(folder, e.X, known)
	}
	return structName{}, false
}
