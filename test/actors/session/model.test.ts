/**
 * Any history of messages, answers, tools, people, nudges, cancellations, repeats and time: the log stays in order, every tool use
 * has its one result, one turn runs, nothing is done twice, and a fold of the frames is what the actor keeps.
 */
import fc from 'fast-check'
import t from 'tap'
import { patchBlock, isFrame, type SessionEvent } from '../../../protocol/session/events.ts'
import { settledTurns, type TranscriptMessage, type TranscriptTurn } from '../../../protocol/session/shapes.ts'
import { ask, definition, message, say, Story, tool, use } from './story.ts'

type Open = Record<string, unknown>
type Step =
  | { readonly do: 'invoke'; readonly key: number | undefined }
  | { readonly do: 'answer'; readonly with: 'text' | 'tools' | 'ask' | 'destroy' | 'odd'; readonly many: number }
  | { readonly do: 'settle'; readonly which: number; readonly outcome: 'completed' | 'failed' | 'cancelled'; readonly twice: boolean }
  | { readonly do: 'respond'; readonly which: number; readonly end: 'yes' | 'no' | 'cancel' }
  | { readonly do: 'nudge'; readonly wake: boolean; readonly key: number | undefined }
  | { readonly do: 'cancel' | 'cancel_all' | 'wake' | 'compact' | 'append' | 'retry' | 'run_turn' }
  | { readonly do: 'pass'; readonly ms: number }
const key = fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('invoke' as const), key }) },
  { weight: 9, arbitrary: fc.record({ do: fc.constant('answer' as const), with: fc.constantFrom('text', 'tools', 'tools', 'ask', 'destroy', 'odd'), many: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 9, arbitrary: fc.record({ do: fc.constant('settle' as const), which: fc.nat(5), outcome: fc.constantFrom('completed', 'completed', 'failed', 'cancelled'), twice: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('respond' as const), which: fc.nat(3), end: fc.constantFrom('yes', 'no', 'cancel') }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('nudge' as const), wake: fc.boolean(), key }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('cancel' as const, 'wake' as const, 'compact' as const, 'append' as const, 'retry' as const, 'run_turn' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel_all' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 400_000 }) }) },
)
const tools = definition([tool('act'), tool('rm', { destructive: true })], { compaction: { strategy: 'auto', threshold_tokens: 60 } })

/** What a client keeps of the frames, by the rules for clients. */
class Fold {
  readonly rows = new Map<string, TranscriptMessage>()
  readonly turns = new Map<string, TranscriptTurn>()
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
      if (settledTurns.has(turn.status)) for (const row of this.rows.values()) if (row.turn_id === turn.id && row.status === 'streaming') this.rows.delete(row.id)
    }
  }
}

function perform(s: Story, one: Step, n: number): void {
  const jobs = [...s.jobs.values()]
  switch (one.do) {
    case 'invoke': return void s.invoke(`message ${n}`, { input: one.key === undefined ? {} : { idempotency_key: `k${one.key}` } }, tools)
    case 'answer': {
      const job = jobs.find(({ kind }) => kind === 'llm_generation')
      if (!job) return
      const many = Array.from({ length: one.many }, (_, i) => i)
      const content: Open[] = one.with === 'text' ? [say(`answer ${n}`)] : one.with === 'odd' ? [{ type: 'tool_result', tool_use_id: 'x' }]
        : many.map((i) => (one.with === 'tools' ? use('c', 'act', { n, i }) : one.with === 'destroy' ? use(`d${i}`, i === 0 ? 'rm' : 'act', { n, i }) : ask(`q${i}`, { title: `${n} ${i}` })))
      return void s.settle(job, { outcome: 'completed', result: message(content) })
    }
    case 'settle': {
      const job = jobs.filter(({ kind }) => kind === 'action_execution')[one.which]
      if (!job) return
      s.settle(job, { outcome: one.outcome, ...(one.outcome === 'completed' ? { result: { n } } : { error_type: 'E', error_message: 'no' }) })
      if (one.twice) s.do('job.settled', { job_id: job.id, outcome: 'completed', attempt: 2, result: { again: true } })
      return
    }
    case 'respond': {
      const open = [...s.questions].filter(([, { state }]) => (state as { record: { status: string } }).record.status === 'pending')[one.which]
      if (open) s.question(open[0], one.end === 'cancel' ? 'interaction.cancel' : 'interaction.respond', one.end === 'cancel' ? {} : { value: one.end === 'yes', roles: [] }, { principal: { type: 'user', id: 'user_1' } })
      return
    }
    case 'nudge': return void s.do('session.nudge', { session_id: 'ses_1', content: `nudge ${one.key ?? n}`, content_hash: `${one.key ?? n}`, definition: tools, wake: one.wake, ...(one.key !== undefined && { idempotency_key: `n${one.key}` }) })
    case 'cancel': return void s.do('session.cancel_turn', { session_id: 'ses_1', turn_id: Object.keys(s.session.state.turns)[0] ?? 'turn_x' })
    case 'cancel_all': return void s.do('session.cancel', { session_id: 'ses_1' })
    case 'compact': return void s.do('session.compact', { session_id: 'ses_1', definition: tools })
    case 'append': return void s.do('session.append', { session_id: 'ses_1', messages: [{ role: 'user', content: [say(`said ${n}`)] }], definition: tools })
    case 'run_turn': return void s.do('turn.open', { turn_id: `turn_run${n}`, owner: { run_id: 'run_1', step_key: 's' }, attempt: 1, content: [say('step')], definition: tools, asker: { id: 'system', type: 'system' } })
    case 'retry': return void (jobs[0] && s.do('job.retried', { job_id: jobs[0].id, attempt: 1, max_attempts: 3, reason: 'failure' }))
    case 'wake':
      for (const [id] of s.questions) s.question(id, 'wake', {})
      return void s.do('wake', {})
    case 'pass': return void s.pass(one.ms)
  }
}

t.test('the invariants of sessions hold in every history', async () => {
  fc.assert(fc.property(fc.array(step, { minLength: 5, maxLength: 60 }), (steps) => {
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
      check('one direct turn at a time', Object.values(state.turns).filter(({ work }) => work.owner === 'direct').length <= 1)
      check('the fold has the turns of the actor', JSON.stringify([...fold.turns.values()].filter(({ status }) => !settledTurns.has(status))) === JSON.stringify(kept))
      check('the revision counts frames', state.revision === s.log.filter(isFrame).length)
      const finals = s.log.flatMap((event) => (event.type === 'message.upsert' && event.status === 'final' ? [event.sequence] : event.type === 'context.stored' ? [event.message.sequence] : []))
      check('numbers are 1, 2, 3…', finals.every((sequence, index) => sequence === index + 1))
      const rows = [...fold.rows.values()].filter(({ status }) => status === 'final').sort((a, b) => (a.sequence ?? 0) - (b.sequence ?? 0))
      for (const [index, row] of rows.entries()) {
        const uses = row.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []))
        const next = rows[index + 1]?.content.flatMap((block) => (block.type === 'tool_result' ? [block.tool_use_id] : [])) ?? []
        if (uses.length > 0) check('every tool use has its one result in the next row', JSON.stringify(uses) === JSON.stringify(next))
      }
      const used = rows.flatMap((row) => row.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : [])))
      check('ids of calls are unique', new Set(used).size === used.length)
      for (const row of fold.rows.values()) if (row.status === 'streaming') check('streaming rows belong to turns that live', kept.some(({ id }) => id === row.turn_id))
      const wanted = [...Object.values(state.turns).flatMap(({ work }) => [work.generation?.job_id, ...Object.values(work.segment?.calls ?? {}).flatMap((call) => (call.state === 'job' ? [call.job_id] : []))]), state.compacting?.job_id].filter((id) => id !== undefined)
      check('exactly the jobs that are waited for are queued', JSON.stringify([...wanted].sort()) === JSON.stringify([...s.jobs.keys()].sort()))
      const open = [...s.questions].filter(([, { state: asked }]) => (asked as { record: { status: string } }).record.status === 'pending').map(([id]) => id)
      const waited = Object.values(state.turns).flatMap(({ work }) => Object.values(work.segment?.calls ?? {}).flatMap((call) => (call.state === 'waiting' ? [call.interaction_id] : [])))
      check('exactly the questions that are waited for are open', JSON.stringify([...open].sort()) === JSON.stringify([...waited].sort()))
      check('a waiting turn says for what', kept.every(({ status, wait }) => (status === 'waiting') === (wait !== undefined)))
      check('something moves every turn', kept.every(({ status }) => status !== 'running' || wanted.length > 0))
    }
    const delivered = s.log.flatMap((event) => (event.type === 'message.upsert' && event.metadata?.['session_nudge_id'] !== undefined ? [event.metadata['session_nudge_id']] : []))
    check('a nudge is delivered once', new Set(delivered).size === delivered.length)
  }), { numRuns: 300 })
})
