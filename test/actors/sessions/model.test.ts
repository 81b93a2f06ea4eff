/**
 * Random histories of messages, answers, tool calls, questions, nudges, cancellations, repeated
 * commands and passing time. Invariants: message numbers have no gaps; every tool use has exactly
 * one result; at most one turn runs; the open jobs are exactly those that a turn or the compaction
 * waits for; the open questions are exactly those that a turn waits for; the active turns that a
 * client folds from the frames equal those of the actor.
 */
import fc from 'fast-check'
import t from 'tap'
import { isFrame, patchBlock, type SessionEvent } from '../../../protocol/sessions/events.ts'
import type { TranscriptMessage, TurnUpsert } from '../../../protocol/sessions/schema.ts'
import { settledTurns } from '../../../protocol/sessions/settled.ts'
import { perform, step, tools } from './histories.ts'
import { Story } from './story.ts'

/** Folds the frames into rows and turns by the documented rules, as a client does. */
class Fold {
  readonly rows = new Map<string, TranscriptMessage>()
  readonly turns = new Map<string, TurnUpsert>()
  apply(event: SessionEvent): void {
    if (!isFrame(event)) return
    if (event.type === 'message.upsert') {
      const { type: _, ...row } = event
      this.rows.set(row.id, row)
    } else if (event.type === 'message.block' || event.type === 'message.block.patch') {
      const row = this.rows.get(event.message_id)
      if (!row) throw new Error('a block of no row')
      const content = [...row.content]
      if (event.type === 'message.block') content[event.content_index] = event.block
      else content[event.content_index] = patchBlock(content[event.content_index] as never, event)
      this.rows.set(row.id, { ...row, content })
    } else if (event.type === 'turn.upsert') {
      const known = this.turns.get(event.id)
      if (known && settledTurns.has(known.status)) throw new Error('a turn ended twice')
      const { type: _, ...turn } = event
      this.turns.set(turn.id, turn)
      if (settledTurns.has(turn.status))
        for (const row of this.rows.values())
          if (row.turn_id === turn.id && row.status === 'streaming') this.rows.delete(row.id)
    }
  }
}

t.test('the invariants of sessions hold in every history', async () => {
  void fc.assert(
    fc.property(fc.array(step, { minLength: 5, maxLength: 60 }), (steps) => {
      const s = new Story()
      s.invoke('first', { input: { idempotency_key: 'k0' } }, tools)
      const fold = new Fold()
      const queued = new Set<string>()
      let read = 0
      const check = (what: string, ok: boolean): void => {
        if (!ok) throw new Error(what)
      }
      for (const [n, one] of steps.entries()) {
        perform(s, one, n)
        for (; read < s.log.length; read++) fold.apply(s.log[read] as SessionEvent)
        const { state } = s.session
        for (const job of s.jobs.values()) queued.add(job.id)
        const kept = Object.values(state.turns).map(({ record }) => record)
        check('one turn runs', kept.filter(({ status }) => status === 'running').length <= 1)
        check(
          'one direct turn at a time',
          Object.values(state.turns).filter(({ work }) => work.owner === 'direct').length <= 1,
        )
        check(
          'the fold has the turns of the actor',
          JSON.stringify(
            [...fold.turns.values()].filter(({ status }) => !settledTurns.has(status)),
          ) === JSON.stringify(kept),
        )
        check('the revision counts frames', state.revision === s.log.filter(isFrame).length)
        const finals = s.log.flatMap((event) =>
          event.type === 'message.upsert' && event.status === 'final'
            ? [event.sequence]
            : event.type === 'context.stored'
              ? [event.message.sequence]
              : [],
        )
        check(
          'numbers are 1, 2, 3…',
          finals.every((sequence, index) => sequence === index + 1),
        )
        const rows = [...fold.rows.values()]
          .filter(({ status }) => status === 'final')
          .sort((a, b) => (a.sequence ?? 0) - (b.sequence ?? 0))
        for (const [index, row] of rows.entries()) {
          const uses = row.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []))
          const next =
            rows[index + 1]?.content.flatMap((block) =>
              block.type === 'tool_result' ? [block.tool_use_id] : [],
            ) ?? []
          if (uses.length > 0)
            check(
              'every tool use has its one result in the next row',
              JSON.stringify(uses) === JSON.stringify(next),
            )
        }
        const used = rows.flatMap((row) =>
          row.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : [])),
        )
        check('ids of calls are unique', new Set(used).size === used.length)
        for (const row of fold.rows.values())
          if (row.status === 'streaming')
            check(
              'streaming rows belong to turns that live',
              kept.some(({ id }) => id === row.turn_id),
            )
        const wanted = [
          ...Object.values(state.turns).flatMap(({ work }) => [
            work.generation?.job_id,
            ...Object.values(work.segment?.calls ?? {}).flatMap((call) =>
              call.state === 'job' ? [call.job_id] : [],
            ),
          ]),
          state.compacting?.job_id,
        ].filter((id) => id !== undefined)
        check(
          'exactly the jobs that are waited for are queued',
          JSON.stringify([...wanted].sort()) === JSON.stringify([...s.jobs.keys()].sort()),
        )
        const open = [...s.questions]
          .filter(
            ([, { state: asked }]) =>
              (asked as { record: { status: string } }).record.status === 'pending',
          )
          .map(([id]) => id)
        const waited = Object.values(state.turns).flatMap(({ work }) =>
          Object.values(work.segment?.calls ?? {}).flatMap((call) =>
            call.state === 'waiting' ? [call.interaction_id] : [],
          ),
        )
        check(
          'exactly the questions that are waited for are open',
          JSON.stringify([...open].sort()) === JSON.stringify([...waited].sort()),
        )
        check(
          'a waiting turn says for what',
          kept.every(({ status, wait }) => (status === 'waiting') === (wait !== undefined)),
        )
        check(
          'something moves every turn',
          kept.every(({ status }) => status !== 'running' || wanted.length > 0),
        )
      }
      const delivered = s.log.flatMap((event) =>
        event.type === 'message.upsert' && event.metadata?.['session_nudge_id'] !== undefined
          ? [event.metadata['session_nudge_id']]
          : [],
      )
      check('a nudge is delivered once', new Set(delivered).size === delivered.length)
    }),
    { numRuns: 300 },
  )
})
