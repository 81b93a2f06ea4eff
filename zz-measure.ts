import { performance } from 'node:perf_hooks'
import { rmSync } from 'node:fs'
import { View } from '/work/n4/views/view.ts'
import { useIndex, storeVector, queueRow } from '/work/n4/views/tables/tables/vectors/indexes.ts'
import { searchSemantically } from '/work/n4/views/tables/tables/vectors/search.ts'
import { applyTable } from '/work/n4/views/tables/tables/changes.ts'
import { addDistance } from '/work/n4/views/tables/tables/vectors/distance.ts'
import { timestamp } from '/work/n4/protocol/common.ts'
const N = Number(process.argv[2] ?? 100000), D = 384
const file = '/tmp/measure.sqlite'
for (const s of ['', '-wal', '-shm']) rmSync(file + s, { force: true })
const view = View.open(file)
const START = Date.UTC(2031, 0, 1)
const schema = { identity_column: 'key', secondary_key_column: 'customer', columns: [{ name: 'key', type: 'string', required: true }, { name: 'customer', type: 'string' }, { name: 'amount', type: 'number' }, { name: 'note', type: 'string' }] }
const words = ['late','invoice','car','bread','doctor','river','green','paper','night','house','seven','music']
let seed = 1
const rnd = () => ((seed = (seed * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff)
const vec = () => { const a = new Float32Array(D); let s = 0; for (let i = 0; i < D; i++) { a[i] = rnd() - 0.5; s += a[i]! ** 2 } s = Math.sqrt(s); for (let i = 0; i < D; i++) a[i]! /= s; return Buffer.from(a.buffer) }
const place = (cursor: number, events: unknown[]) => ({ cursor, entry: { project: 'prj_1', kind: 'table', id: 'tbl_1', command: { id: 'c', name: 'n' }, origin: { at: START, principal: { type: 'system', id: 'x' } }, events, prev: 0 } }) as never
let store: any
view.change((s) => { store = s; applyTable(s, place(1000, [{ type: 'table.created', id: 'tbl_1', table: { id: 'tbl_1', name: 't', schema, created_at: timestamp(START), updated_at: timestamp(START) }, claim: {} }])); s.flush() })
view.change((s) => { useIndex(s, 1, 'm', START); s.run('UPDATE vector_indexes SET reached = NULL') })
let t = performance.now()
for (let at = 0, change = 1; at < N; at += 1000, change++) {
  view.change((s) => {
    const rows = Array.from({ length: 1000 }, (_, i) => ({ id: `row_${String(at + i).padStart(22, '0')}`, identity: `k${at + i}`, data: { key: `k${at + i}`, customer: `c${(at + i) % 1000}`, amount: at + i, note: Array.from({ length: 20 }, () => words[Math.floor(rnd() * 12)]).join(' ') }, version: 1, created_at: timestamp(START + change), updated_at: timestamp(START + change) }))
    applyTable(s, place(change * 1000 + 1000, [{ type: 'table.rows_inserted', rows, table_name: 't', change }]))
    for (const { id } of rows) { queueRow(s, 1, id, change); storeVector(s, 'm', { tbl: 1, id, change, hash: Buffer.alloc(32), vector: vec() }) }
    s.flush()
  })
}
console.log('filled', N, Math.round(performance.now() - t), 'ms', 'rss', Math.round(process.memoryUsage().rss / 1e6))
const pct = (xs: number[], p: number) => xs.toSorted((a, b) => a - b)[Math.min(xs.length - 1, Math.floor(xs.length * p))]
for (const engine of ['sqlite-vec', 'javascript']) {
  if (engine === 'javascript') addDistance(store.db, (() => { throw new Error('x') }) as never)
  for (const [name, more] of [['semantic', {}], ['indexed filter (100 rows)', { filter: { customer: 'c7' } }], ['filter on 1 of 10', { filter: { amount: { $lt: N / 10 } } }], ['hybrid', { mode: 'hybrid', query: 'late invoice car' }]] as const) {
    const walls: number[] = [], whole: number[] = [], parts: number[] = []
    for (let i = 0; i < (engine === 'javascript' ? 4 : 25); i++) {
      const begun = process.cpuUsage()
      const gen = searchSemantically(store, 1, START, { id: 'tbl_1', model: 'm', mode: 'semantic', query: 'x', vector: vec().toString('base64'), limit: 20, ...more } as never)
      let cpu = 0
      for (;;) { const a = performance.now(); const r = gen.next(); const b = performance.now(); parts.push(b - a); cpu += b - a; if (r.done) { if (!(r.value as any).items?.length) console.log(r.value); break } }
      const used = process.cpuUsage(begun); whole.push((used.user + used.system) / 1000); walls.push(cpu)
    }
    console.log(engine, '|', name, '| p50', pct(whole, 0.5)!.toFixed(0), 'p99', pct(whole, 0.99)!.toFixed(0), 'min', Math.min(...whole).toFixed(0), 'wall p50', pct(walls, 0.5)!.toFixed(0), 'p99', pct(walls, 0.99)!.toFixed(0), '| part p50', pct(parts, 0.5)!.toFixed(1), 'p99', pct(parts, 0.99)!.toFixed(1), '| rss', Math.round(process.memoryUsage().rss / 1e6), 'MB heap', Math.round(process.memoryUsage().heapUsed / 1e6))
  }
}
if (1) { }
const size = store.one('SELECT sum(length(vector)) AS n FROM row_vectors').n
console.log('vectors MB', size / 1e6, 'file MB', Number(store.db.pragma('page_count', { simple: true })) * 4096 / 1e6)
