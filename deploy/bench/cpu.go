package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cpu is processor time by the name of the process: unlike a rate it hardly depends on what else the machine does.
type cpu map[string]time.Duration

// spent gives what this process and all below it have used since they were started.
func spent() (cpu, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	parents, used, names := map[int]int{}, map[int]time.Duration{}, map[int]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || len(text) == 0 || err != nil {
			continue // it has ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}
		// "123 (name) S 1 …": a name may hold anything.
		open, end := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
		fields := strings.Fields(string(text[end+1:]))
		names[pid] = string(text[open+1 : end])
		if parents[pid], used[pid], err = parse(fields); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	all := cpu{}
	for pid, took := range used {
		if below(pid, os.Getpid(), parents) {
			all[names[pid]] += took
		}
	}
	return all, nil
}

// parse takes parent and processor time, also of children that have ended, out of the fields from the state on.
func parse(fields []string) (parent int, took time.Duration, err error) {
	const tick = time.Second / 100 // USER_HZ
	if parent, err = strconv.Atoi(fields[1]); err != nil {
		return 0, 0, err
	}
	const user, ended = 11, 15
	for _, f := range fields[user:ended] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, 0, err
		}
		took += time.Duration(n) * tick
	}
	return parent, took, nil
}

func below(pid, top int, parents map[int]int) bool {
	for pid > 1 && pid != top {
		pid = parents[pid]
	}
	return pid == top
}

// minus is what was used between two moments.
func (c cpu) minus(before cpu) cpu {
	out := cpu{}
	for name, took := range c {
		out[name] = max(0, took-before[name])
	}
	return out
}

func (c cpu) plus(more cpu) {
	for name, took := range more {
		c[name] += took
	}
}

// per says how much of it fell to each of n, in µs or, when that is much, in ms.
func (c cpu) per(n int) string {
	var sum time.Duration
	for _, took := range c {
		sum += took / time.Duration(n)
	}
	unit, name := time.Microsecond, "µs"
	const much = 10 * time.Millisecond
	if sum >= much {
		unit, name = time.Millisecond, "ms"
	}
	var parts []string
	for _, process := range slices.Sorted(maps.Keys(c)) {
		if each := c[process] / time.Duration(n); each >= unit {
			parts = append(parts, fmt.Sprintf("%s %d", process, each/unit))
		}
	}
	return fmt.Sprintf("%d %s (%s)", sum/unit, name, strings.Join(parts, ", "))
}
