/**
 * Every property of a row of the endpoint table is stated in the row itself. No other file lists
 * the rows that have the property.
 */
import t from 'tap'
import { api } from '../protocol/api.ts'
import { rowListsIn } from './support/structure/row-lists.ts'
import { readSources } from './support/structure/sources.ts'

const isRow = (name: string): boolean => Object.hasOwn(api, name)

t.test('no file lists the names of rows', async (t) => {
  t.strictSame(rowListsIn(readSources(), isRow), [])
})

const planted = (text: string, file = 'gateway/some.ts'): string[] =>
  rowListsIn(new Map([[file, text]]), isRow)

t.test('a planted list is found', async (t) => {
  const found = ['gateway/some.ts:1 run.start, run.list, run.get']
  for (const text of [
    `const list = ['run.start', 'run.list', 'other', 'run.get'] as const`,
    `const list: ReadonlySet<string> = new Set(['run.start', 'run.list', 'run.get'])`,
    `for (const name of ['run.start', 'run.list', 'run.get']) each(name)`,
    `const list = { 'run.start': true, 'run.list': -1, 'run.get': [{ a: 'b' }], 'run.steps': fn }`,
  ])
    t.strictSame(planted(text), found, text)
})

t.test('implementations of rows and the rows themselves are not lists', async (t) => {
  for (const text of [
    `const list = ['run.start', 'run.list', 'run.other']`,
    `const arms = { 'run.start': start, 'run.list': () => 1, 'run.get': get() }`,
    `const frames = { 'run.start': { ...start }, 'run.list': [list], 'run.get': { get } }`,
  ])
    t.strictSame(planted(text), [], text)
  for (const file of ['protocol/api.ts', 'protocol/runs/rows.ts', 'protocol/access/user-rows.ts'])
    t.strictSame(planted(`const relays = ['run.start', 'run.list', 'run.get']`, file), [], file)
})
