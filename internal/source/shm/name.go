package shm

import (
	"strconv"
	"strings"
)

const (
	namePrefix = "tt_device_"
	nameSuffix = "_memory"
)

// RegionName is the file name of a chip's region.
func RegionName(id uint64) string {
	return namePrefix + strconv.FormatUint(id, 10) + nameSuffix
}

// ParseName returns the chip id in a region's file name. Only the writer's own
// spelling counts: unsigned decimal, no sign, no leading zero.
func ParseName(name string) (id uint64, ok bool) {
	digits, ok := strings.CutPrefix(name, namePrefix)
	if !ok {
		return 0, false
	}
	if digits, ok = strings.CutSuffix(digits, nameSuffix); !ok {
		return 0, false
	}
	id, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || digits[0] == '+' || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	return id, true
}
