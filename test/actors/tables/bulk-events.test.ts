/** The commands that publish the rows of a bulk insert. */
import t from 'tap'
import type { Address, Event } from '../../../protocol/entry.ts'
import { actor, created, facts } from './support.ts'

t.test('a bulk insert is published by few commands of bounded size', async (t) => {
  const bulk = (count: number, title: string) =>
    created().when('row.bulk', {
      rows: Array.from({ length: count }, (_, i) => ({ key: `${i}`, title })),
      facts: facts(),
    })
  const published = ({ effects }: ReturnType<typeof bulk>) =>
    effects.map((effect) =>
      'tell' in effect
        ? (effect.tell.input as { publications: { source_id: string }[] }).publications
        : [],
    )
  const small = bulk(1000, 'x')
  t.strictSame(
    published(small).map((list) => list.length),
    [250, 250, 250, 250],
  )
  t.strictSame(
    published(small).flatMap((list) => list.map(({ source_id }) => source_id)),
    Array.from({ length: 1000 }, (_, i) => `row_${i + 1}`).sort(),
    'each row once, in order',
  )
  const large = published(bulk(40, 'x'.repeat(50_000)))
  t.strictSame(
    large.map((list) => list.length),
    Array.from({ length: 14 }, (_, i) => (i < 13 ? 3 : 1)),
  )
  for (const list of large) t.ok(JSON.stringify(list).length < 200_000)
})

t.test('a bulk insert of an earlier release is published by a command per row', async (t) => {
  const { events } = created().when('row.bulk', {
    rows: [{ key: 'a' }, { key: 'b' }],
    facts: facts(),
  })
  const { groups: _, ...earlier } = { groups: 0, ...(events[0] as Event) }
  const effects = actor().react?.['table.rows_inserted']?.(
    earlier as never,
    { project: 'prj_1', kind: 'table', id: 'table_1' } as Address,
  )
  t.match(effects, [
    { tell: { name: 'source.publish', input: { source_id: 'row_1' } } },
    { tell: { name: 'source.publish', input: { source_id: 'row_2' } } },
  ])
})
