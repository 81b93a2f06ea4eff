/**
 * The newest commits of a node, kept for its views. Each can be taken once, and their total size is
 * bounded.
 */

import t from 'tap'
import type { HostDeps } from '../../../nodes/host/deps.ts'
import { envelopeText, parseEnvelope } from '../../../nodes/host/memory/codec.ts'
import { Recent } from '../../../nodes/host/memory/recent.ts'
import { command, runId, ToyWorld } from '../support/toy.ts'

t.test('an envelope can be taken once, and the oldest are dropped', (t) => {
  const recent = new Recent((envelope) => envelope)
  const envelope = (epoch: number) => ({ v: 1, epoch, prev: 0, entries: [] }) as const
  recent.keep('a', envelope(1), '{}')
  t.same(recent.take('a'), envelope(1))
  t.equal(recent.take('a'), undefined)
  for (let i = 0; i < 10; i++) recent.keep(`m${i}`, envelope(i), 'x'.repeat(1024 * 1024))
  t.same(
    Array.from({ length: 10 }, (_, i) => recent.take(`m${i}`)?.epoch),
    [undefined, undefined, undefined, undefined, undefined, undefined, 6, 7, 8, 9],
  )
  t.end()
})

t.test('a stored commit equals its entry in the journal', async (t) => {
  const world = new ToyWorld()
  const recent = new Recent((envelope) => envelope)
  const texts = new Recent((_, json) => json)
  const both: HostDeps['recent'] = {
    keep: (...commit) => {
      recent.keep(...commit)
      texts.keep(...commit)
    },
  }
  const shard = await world.owner(0, { ...world.deps(), recent: both })
  await Promise.all(
    [1, 2, 1].map((n, i) =>
      shard.submit(
        command(
          runId(n),
          'add',
          { by: n, sibling: runId(3) },
          undefined,
          i === 0 ? 'print' : undefined,
        ),
      ),
    ),
  )
  const stored = world.journal.messages.at(-1)
  const json = envelopeText(stored?.data ?? new Uint8Array())
  t.same(recent.take(stored?.id ?? ''), parseEnvelope(json))
  t.equal(texts.take(stored?.id ?? ''), json)
})
