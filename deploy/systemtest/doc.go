// Package systemtest runs the real binary as processes on real servers and attacks it: kill, stop and continue, cut
// connections, broken input, several pods (style, "crash, order, takeover"). One test for each row of the known faults it
// covers, named TestK07_…. It has no other code.
package systemtest
