/** A map whose removed values are not kept in memory by its former hash tables. */
import { deepEqual, equal } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import t from 'tap'
import { TransientMap } from '../../../protocol/rules/transient-map.ts'

t.test('it has the semantics of a map', (t) => {
  const map = new TransientMap<string, { readonly n: number }>()
  const value = (n: number) => ({ n })
  t.equal(map.delete('a'), false)
  map.set('a', value(1))
  map.set('b', value(2))
  map.set('a', value(3))
  t.same([map.size, map.get('a'), map.has('b'), map.has('c')], [2, value(3), true, false])
  t.same([...map.keys()], ['a', 'b'], 'in the order of the first additions')
  t.same([...map.values()], [value(3), value(2)])
  t.equal(map.delete('a'), true)
  t.same([map.get('a'), map.has('a'), map.size], [undefined, false, 1])
  map.set('a', value(4))
  const seen: number[] = []
  for (const { n } of map.values()) {
    seen.push(n)
    if (n === 2) map.delete('a')
    if (n === 2) map.set('c', value(5))
  }
  t.same(seen, [2, 5], 'removed values are not visited, added ones are')
  map.clear()
  t.same([map.size, map.get('b'), [...map.values()]], [0, undefined, []])
  t.end()
})

t.test('it behaves like a map while entries are added and removed', (t) => {
  const step = fc.record({ key: fc.nat(400), n: fc.nat(9), remove: fc.boolean() })
  const property = fc.property(fc.array(step, { maxLength: 2000, size: 'max' }), (steps) => {
    const [map, model] = [new TransientMap<number, number>(), new Map<number, number>()]
    for (const { key, n, remove } of steps)
      if (remove) equal(map.delete(key), model.delete(key))
      else {
        map.set(key, n)
        model.set(key, n)
      }
    deepEqual([map.size, ...map.keys()], [model.size, ...model.keys()])
    deepEqual([...map.values()], [...model.values()])
  })
  t.doesNotThrow(() => fc.assert(property))
  t.end()
})

t.test('entries may be removed during an iteration', (t) => {
  const map = new TransientMap<number, number>()
  for (let n = 0; n < 1000; n++) map.set(n, n)
  const seen: number[] = []
  for (const n of map.values()) {
    seen.push(n)
    map.delete(n)
    map.delete(n + 1)
  }
  t.equal(map.size, 0)
  t.same(
    seen,
    Array.from({ length: 500 }, (_, n) => 2 * n),
  )
  t.end()
})

/**
 * Adds values to a map and removes them again, in a new process. Returns the number of megabytes
 * that young collections promote after a full collection has moved the table of the map to the old
 * generation.
 * @param map expression that creates the map.
 * @param value expression of a value.
 */
function promoted(map: string, value: string): number {
  const program = `
    import { GCProfiler } from 'node:v8'
    import { TransientMap } from '${pathToFileURL('protocol/rules/transient-map.ts')}'
    const map = ${map}
    const profiler = new GCProfiler()
    for (let n = 0; n < 400_000; n++) {
      map.set('key ' + n, ${value})
      map.delete('key ' + (n - 200))
      if (n === 1000) {
        gc()
        profiler.start()
      }
    }
    const old = ({ heapSpaceStatistics }) =>
      heapSpaceStatistics.find(({ spaceName }) => spaceName === 'old_space').spaceUsedSize
    let bytes = 0
    for (const { gcType, beforeGC, afterGC } of profiler.stop().statistics)
      if (gcType === 'Scavenge') bytes += old(afterGC) - old(beforeGC)
    console.log(bytes / 1e6)`
  const loader = `--import=${import.meta.resolve('@oxc-node/core/register')}`
  const heap = ['--expose-gc', '--min-semi-space-size=16', '--max-semi-space-size=16']
  const flags = [...heap, loader, '--input-type=module', '-e', program]
  return Number(execFileSync(process.execPath, flags, { encoding: 'utf8' }))
}

t.test('young collections find the removed values and the old tables', (t) => {
  for (const value of ['Array.from({ length: 10 }, () => ({ n }))', '{ n }']) {
    const transient = promoted('new TransientMap()', value)
    const plain = promoted('new Map()', value)
    t.ok(transient < plain / 4, `${value}: ${transient} MB; with a plain map ${plain} MB`)
  }
  t.end()
})
