/**
 * Steps of random session histories: commands from clients, workers and people, answers from
 * models, and the passage of time.
 */
import fc from 'fast-check'
import { ask, definition, message, type Story, say, tool, use } from './story.ts'

type Open = Record<string, unknown>
export type Step =
  | { readonly do: 'invoke'; readonly key: number | undefined }
  | {
      readonly do: 'answer'
      readonly with: 'text' | 'tools' | 'ask' | 'destroy' | 'odd'
      readonly many: number
    }
  | {
      readonly do: 'settle'
      readonly which: number
      readonly outcome: 'completed' | 'failed' | 'cancelled'
      readonly twice: boolean
    }
  | { readonly do: 'respond'; readonly which: number; readonly end: 'yes' | 'no' | 'cancel' }
  | { readonly do: 'nudge'; readonly wake: boolean; readonly key: number | undefined }
  | { readonly do: 'cancel' | 'cancel_all' | 'wake' | 'compact' | 'append' | 'retry' | 'run_turn' }
  | { readonly do: 'pass'; readonly ms: number }
const key = fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined })
/** A random step, weighted towards steps that start or end something. */
export const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('invoke' as const), key }) },
  {
    weight: 9,
    arbitrary: fc.record({
      do: fc.constant('answer' as const),
      with: fc.constantFrom('text', 'tools', 'tools', 'ask', 'destroy', 'odd'),
      many: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 9,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      which: fc.nat(5),
      outcome: fc.constantFrom('completed', 'completed', 'failed', 'cancelled'),
      twice: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('respond' as const),
      which: fc.nat(3),
      end: fc.constantFrom('yes', 'no', 'cancel'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('nudge' as const), wake: fc.boolean(), key }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'cancel' as const,
        'wake' as const,
        'compact' as const,
        'append' as const,
        'retry' as const,
        'run_turn' as const,
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel_all' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      ms: fc.integer({ min: 0, max: 400_000 }),
    }),
  },
)
export const tools = definition([tool('act'), tool('rm', { destructive: true })], {
  compaction: { strategy: 'auto', threshold_tokens: 60 },
})

/**
 * Performs a step. A step that does not apply in the current state has no effect.
 * @param n the number of the step, which appears in the message texts.
 */
export function perform(s: Story, one: Step, n: number): void {
  const jobs = [...s.jobs.values()]
  switch (one.do) {
    case 'invoke':
      return void s.invoke(
        `message ${n}`,
        { input: one.key === undefined ? {} : { idempotency_key: `k${one.key}` } },
        tools,
      )
    case 'answer': {
      const job = jobs.find(({ kind }) => kind === 'llm_generation')
      if (!job) return
      const many = Array.from({ length: one.many }, (_, i) => i)
      const content: Open[] =
        one.with === 'text'
          ? [say(`answer ${n}`)]
          : one.with === 'odd'
            ? [{ type: 'tool_result', tool_use_id: 'x' }]
            : many.map((i) =>
                one.with === 'tools'
                  ? use('c', 'act', { n, i })
                  : one.with === 'destroy'
                    ? use(`d${i}`, i === 0 ? 'rm' : 'act', { n, i })
                    : ask(`q${i}`, { title: `${n} ${i}` }),
              )
      return void s.settle(job, { outcome: 'completed', result: message(content) })
    }
    case 'settle': {
      const job = jobs.filter(({ kind }) => kind === 'action_execution')[one.which]
      if (!job) return
      s.settle(job, {
        outcome: one.outcome,
        ...(one.outcome === 'completed'
          ? { result: { n } }
          : { error_type: 'E', error_message: 'no' }),
      })
      if (one.twice)
        s.do('job.settled', {
          job_id: job.id,
          outcome: 'completed',
          attempt: 2,
          result: { again: true },
        })
      return
    }
    case 'respond': {
      const open = [...s.questions].filter(
        ([, { state }]) => (state as { record: { status: string } }).record.status === 'pending',
      )[one.which]
      if (open)
        s.question(
          open[0],
          one.end === 'cancel' ? 'interaction.cancel' : 'interaction.respond',
          one.end === 'cancel' ? {} : { value: one.end === 'yes', roles: [] },
          { principal: { type: 'user', id: 'user_1' } },
        )
      return
    }
    case 'nudge':
      return void s.do('session.nudge', {
        session_id: 'ses_1',
        content: `nudge ${one.key ?? n}`,
        content_hash: `${one.key ?? n}`,
        definition: tools,
        wake: one.wake,
        ...(one.key !== undefined && { idempotency_key: `n${one.key}` }),
      })
    case 'cancel':
      return void s.do('session.cancel_turn', {
        session_id: 'ses_1',
        turn_id: Object.keys(s.session.state.turns)[0] ?? 'turn_x',
      })
    case 'cancel_all':
      return void s.do('session.cancel', { session_id: 'ses_1' })
    case 'compact':
      return void s.do('session.compact', { session_id: 'ses_1', definition: tools })
    case 'append':
      return void s.do('session.append', {
        session_id: 'ses_1',
        messages: [{ role: 'user', content: [say(`said ${n}`)] }],
        definition: tools,
      })
    case 'run_turn':
      return void s.do('turn.open', {
        turn_id: `turn_run${n}`,
        owner: { run_id: 'run_1', step_key: 's' },
        attempt: 1,
        content: [say('step')],
        definition: tools,
        asker: { id: 'system', type: 'system' },
      })
    case 'retry':
      return void (
        jobs[0] &&
        s.do('job.retried', { job_id: jobs[0].id, attempt: 1, max_attempts: 3, reason: 'failure' })
      )
    case 'wake':
      for (const [id] of s.questions) s.question(id, 'wake', {})
      return void s.do('wake', {})
    case 'pass':
      return void s.pass(one.ms)
  }
}
