package sis_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// TestCataloguePage keeps docs/catalogue.md what the catalogue is.
func TestCataloguePage(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	require.NoError(t, sis.WriteCatalogue(&page))
	compareFile(t, "../../docs/catalogue.md", page.Bytes())
	require.Error(t, sis.WriteCatalogue(brokenWriter{}))
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestCatalogueIsSound(t *testing.T) {
	t.Parallel()
	counts, seen := map[string]int{}, map[message.Kind]bool{}
	for k := range sis.Catalogue() {
		counts[k.TYPE]++
		require.False(t, seen[k.Name], k.Name)
		seen[k.Name] = true
		require.NotEmpty(t, k.Meaning, k.Name)
		require.Contains(t, sis.AllModes(), k.Mode)
		require.Equal(t, k.STYP == "RESP", k.Answers != "")
		require.Equal(t, k.TYPE != sis.TypeFLOP, k.Payload == nil, k.Name)
		require.Equal(t, k.TYPE != sis.TypeFLOP && k.TYPE != sis.TypeSCHD, k.Reference != nil, k.Name)
		found, ok := sis.Lookup(message.Kind(strings.ToLower(string(k.Name))))
		require.True(t, ok)
		require.Same(t, k, found)
		for _, p := range k.Payload {
			require.NotNil(t, p.Element, k.Name)
			require.Contains(t, sis.AllEffects(), p.Absent)
			require.Contains(t, sis.AllEffects(), p.Empty)
			if p.List != nil {
				require.Equal(t, p.List.Mode, k.Mode)
			}
		}
	}
	require.Equal(t, 3, counts[sis.TypeSCHD])
	require.Equal(t, 50, counts[sis.TypeFLOP])
	require.Len(t, sis.ReferenceSpecs(), 23)
	for _, s := range sis.ReferenceSpecs() {
		require.Equal(t, 5, counts[s.Type], s.Type)
	}
	_, ok := sis.Lookup("SCHD-DEL")
	require.False(t, ok)
	for range sis.Catalogue() {
		break
	}
}

func TestNamesOfFieldsAndLists(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, f := range sis.ScalarSpecs() {
		require.False(t, names[f.Name], f.Name)
		names[f.Name] = true
		found, ok := sis.Scalar(f.Name)
		require.True(t, ok)
		require.Equal(t, f, *found)
		want := f.JSON
		if f.Group != "" {
			want = f.Group + "." + f.JSON
		}
		require.Equal(t, want, f.Name)
		require.Contains(t, sis.AllForms(), f.Form)
		require.NotEqual(t, sis.Empty, f.Type())
	}
	require.Len(t, sis.ListSpecs(), 14)
	for _, l := range sis.ListSpecs() {
		require.False(t, names[l.Name], l.Name)
		names[l.Name] = true
		found, ok := sis.ListByName(l.Name)
		require.True(t, ok)
		require.Equal(t, l, *found)
		require.True(t, l.Key.Mandatory)
		require.Equal(t, strings.ToLower(l.Elem), l.Name)
	}
	_, ok := sis.Scalar("flid") // the key is none
	require.False(t, ok)
	for _, typ := range sis.AllTypes() {
		require.NotEqual(t, "no such type", typ.String())
	}
}
