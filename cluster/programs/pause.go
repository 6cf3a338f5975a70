// The program of a pod's sandbox: it holds the pod's namespaces, and reaps processes whose parents have ended.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for {
			if process, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); process <= 0 || err != nil {
				break
			}
		}
	}
}
