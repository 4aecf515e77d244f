package history

import "container/list"

// lru is a map that can drop the key that was longest without a get or put. Not safe for concurrent use.
type lru[K comparable, V any] struct {
	m     map[K]*list.Element
	order *list.List // front: newest
}

type lruEntry[K comparable, V any] struct {
	key K
	val V
}

func newLRU[K comparable, V any]() lru[K, V] {
	return lru[K, V]{m: map[K]*list.Element{}, order: list.New()}
}

// get also marks k as used.
func (l *lru[K, V]) get(k K) (v V, ok bool) {
	e, ok := l.m[k]
	if !ok {
		return v, false
	}
	l.order.MoveToFront(e)
	return e.Value.(lruEntry[K, V]).val, true
}

func (l *lru[K, V]) peek(k K) (v V, ok bool) {
	e, ok := l.m[k]
	if !ok {
		return v, false
	}
	return e.Value.(lruEntry[K, V]).val, true
}

// put adds the new key k and returns how many old ones made room for it.
func (l *lru[K, V]) put(k K, v V, limit int) (evicted uint64) {
	l.m[k] = l.order.PushFront(lruEntry[K, V]{k, v})
	for l.order.Len() > limit {
		e := l.order.Back()
		l.order.Remove(e)
		delete(l.m, e.Value.(lruEntry[K, V]).key)
		evicted++
	}
	return evicted
}
