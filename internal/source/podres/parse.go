package podres

import (
	"encoding/binary"
	"errors"

	"github.com/ttmon/ttmon/internal/model"
)

// maxClaims bounds what is kept of one answer.
const maxClaims = 16 << 10

// parseList reads a ListPodResourcesResponse. Fields that it does not know it skips,
// as every reader of protocol buffers does; the numbers are those of the kubelet's
// api.proto, version v1.
func parseList(b []byte) ([]model.PodClaim, error) {
	var list []model.PodClaim
	err := each(b, func(field uint64, value []byte) error {
		if field != 1 { // pod_resources
			return nil
		}
		return parsePod(value, func(c model.PodClaim) error {
			if len(list) >= maxClaims {
				return errors.New("more devices in use than any node has")
			}
			list = append(list, c)
			return nil
		})
	})
	return list, err
}

func parsePod(b []byte, emit func(model.PodClaim) error) error {
	var pod model.PodClaim
	var containers [][]byte
	err := each(b, func(field uint64, value []byte) error {
		switch field {
		case 1:
			pod.Pod = string(value)
		case 2:
			pod.Namespace = string(value)
		case 3:
			containers = append(containers, value)
		}
		return nil
	})
	for _, c := range containers {
		if err == nil {
			err = parseContainer(c, pod, emit)
		}
	}
	return err
}

func parseContainer(b []byte, claim model.PodClaim, emit func(model.PodClaim) error) error {
	var plugins, dynamic [][]byte
	err := each(b, func(field uint64, value []byte) error {
		switch field {
		case 1:
			claim.Container = string(value)
		case 2:
			plugins = append(plugins, value)
		case 5:
			dynamic = append(dynamic, value)
		}
		return nil
	})
	for _, p := range plugins {
		if err == nil {
			err = parsePlugin(p, claim, emit)
		}
	}
	for _, d := range dynamic {
		if err == nil {
			err = parseDynamic(d, claim, emit)
		}
	}
	return err
}

// parsePlugin reads a ContainerDevices: what a device plugin gave.
func parsePlugin(b []byte, claim model.PodClaim, emit func(model.PodClaim) error) error {
	var ids []string
	err := each(b, func(field uint64, value []byte) error {
		switch field {
		case 1:
			claim.Resource = string(value)
		case 2:
			ids = append(ids, string(value))
		}
		return nil
	})
	for _, id := range ids {
		claim.Names = []string{id}
		if err == nil {
			err = emit(claim)
		}
	}
	return err
}

// parseDynamic reads a DynamicResource: what a claim of DRA got.
func parseDynamic(b []byte, claim model.PodClaim, emit func(model.PodClaim) error) error {
	return each(b, func(field uint64, value []byte) error {
		if field != 4 { // claim_resources
			return nil
		}
		one := claim
		err := each(value, func(field uint64, value []byte) error {
			switch field {
			case 1: // cdi_devices
				return each(value, func(field uint64, value []byte) error {
					if field == 1 {
						one.Names = append(one.Names, string(value))
					}
					return nil
				})
			case 2:
				one.Resource = string(value)
			case 4:
				one.Names = append(one.Names, string(value))
			}
			return nil
		})
		if err != nil {
			return err
		}
		return emit(one)
	})
}

// Wire types of protocol buffers.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// errMessage is the error of bytes that are no message.
var errMessage = errors.New("not a protocol buffer")

// each calls do for every field of a message that has a length: strings, bytes,
// messages. Others are skipped; groups, which proto3 does not have, are errors.
func each(b []byte, do func(field uint64, value []byte) error) error {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag>>3 == 0 {
			return errMessage
		}
		b = b[n:]
		size := uint64(0)
		switch tag & 7 {
		case wireVarint:
			if _, n = binary.Uvarint(b); n <= 0 {
				return errMessage
			}
			size = uint64(n)
		case wireFixed64:
			size = 8
		case wireFixed32:
			size = 4
		case wireBytes:
			if size, n = binary.Uvarint(b); n <= 0 {
				return errMessage
			}
			b = b[n:]
		default:
			return errMessage
		}
		if size > uint64(len(b)) {
			return errMessage
		}
		if tag&7 == wireBytes {
			if err := do(tag>>3, b[:size]); err != nil {
				return err
			}
		}
		b = b[size:]
	}
	return nil
}
