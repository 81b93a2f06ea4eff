/**
 * A setup that plays one run: the run actor with its children, and an event matcher that answers
 * immediately. The script controls the jobs of the queue, the questions and the clock.
 */
import { type Cause, type Decided, defineActor, evolve, type Tell } from '../../actors/actor.ts'
import { run } from '../../actors/runs/run.ts'
import { progressesOf, type RunState } from '../../actors/runs/state.ts'
import type { Definition } from '../../protocol/access/directory.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import { prefixes } from '../../protocol/ids.ts'
import type { JobHeader } from '../../protocol/jobs/rows.ts'
import type { RunEvent } from '../../protocol/runs/events.ts'
import type { WorkflowRun } from '../../protocol/runs/schema.ts'
import type { Spec } from '../../protocol/workflows/spec.ts'
import { watching } from '../actors/runs/story.ts'

/** 2026-01-01T00:00:00.000Z */
const START = 1_767_225_600_000
const actor = defineActor(run)
type Values = Record<string, unknown>
interface Held {
  readonly header: JobHeader
  failures: number
  taken: boolean
  ended: boolean
}

export class World {
  now = START
  /** Events of the run itself, not of its children. */
  readonly events: RunEvent[] = []
  readonly #runs = new Map<string, RunState | null>()
  readonly #jobs = new Map<string, Held>()
  readonly #counts = new Map<string, number>()
  readonly #id = 'run_main'

  start(
    spec: Spec,
    input: Values,
    definitions: Readonly<Record<string, Definition>>,
  ): Refusal | undefined {
    return this.send('run.start', { ...input, spec, definitions })
  }
  get record(): WorkflowRun {
    const state = this.#runs.get(this.#id)
    if (!state) throw new Error('the run was not started')
    return state.record
  }
  /**
   * Decides a command to a run, and all commands that immediately follow from it. Returns the
   * refusal of the command, or undefined if it was accepted.
   */
  send(name: string, input: Values, id = this.#id): Refusal | undefined {
    const refused = this.#decide(id, name, input)
    this.#settle()
    return refused
  }
  pass(ms: number): void {
    const until = this.now + ms
    for (let next = this.#next(); next && next.due <= until; next = this.#next()) {
      this.now = Math.max(this.now, next.due)
      this.#decide(next.id, 'wake', {})
    }
    this.now = until
  }
  /**
   * Reports the outcome of a step's job, or marks the job as taken. A failure leads to another
   * attempt if any remain.
   */
  job(step: string, outcome: string, more: Values): void {
    const held = [...this.#jobs.values()].findLast(
      ({ header, ended }) => header.step_key === step && !ended,
    )
    if (!held) throw new Error(`no job of ${step} is waiting`)
    const { header } = held
    const attempt = held.failures + 1
    const about = { job_id: header.id, attempt, worker_instance_id: 'worker-1' }
    const result = outcome === 'completed' ? { result: more } : more
    if (outcome === 'taken') held.taken = true
    else if (outcome === 'failed' && attempt < header.max_attempts) {
      held.failures++
      this.send(
        'job.retried',
        { ...about, max_attempts: header.max_attempts, reason: 'failure', ...more },
        header.run_id,
      )
    } else {
      held.ended = true
      this.send('job.settled', { ...about, outcome, ...result }, header.run_id)
    }
  }
  /**
   * Reports the outcome of a step's turn. If the turn is not open yet, it is opened first. Two
   * outcomes are special: `opened` only opens the turn, and `unknown` means that its definition
   * cannot be looked up.
   */
  turn(step: string, outcome: string, more: Values): void {
    const found = progressesOf(this.#runs.get(this.#id) as RunState).find(
      ([, { wait }]) => wait?.kind === 'agent' && wait.step === step,
    )?.[1].wait
    if (found?.kind !== 'agent') throw new Error(`no agent is asked by ${step}`)
    const { turn_id, job_id, session_id = 'ses_1' } = found
    if (outcome === 'unknown')
      return void this.send('job.settled', { job_id, outcome: 'failed', attempt: 1, ...more })
    if (job_id !== undefined)
      this.send('turn.defined', {
        turn_id,
        session_id,
        place: {},
        definition: { agent_id: 'agt_1' },
      })
    if (outcome !== 'opened')
      this.send('turn.settled', {
        turn_id,
        session_id,
        status: outcome,
        ...(outcome === 'completed' && more['text'] === undefined ? { output: more } : more),
      })
  }
  /** Settles the question of a step as answered, expired or cancelled. */
  answer(step: string, status: string, value: unknown): void {
    const found = progressesOf(this.#runs.get(this.#id) as RunState).find(
      ([, { wait }]) => wait?.kind === 'interaction' && wait.step === step,
    )?.[1].wait
    if (found?.kind !== 'interaction') throw new Error(`nobody is asked by ${step}`)
    const about = {
      interaction_id: found.interaction_id,
      ...(status === 'completed' && { value, responder: { user_id: 'ada' } }),
    }
    this.send('interaction.settled', { ...about, signal_name: `interaction.${step}`, status })
  }

  /**
   * Wakes the runs that are due within one millisecond: children that start, and runs that paused
   * between two commits.
   */
  #settle(): void {
    for (let next = this.#next(); next && next.due <= this.now + 1; next = this.#next()) {
      this.now = Math.max(this.now, next.due)
      this.#decide(next.id, 'wake', {})
    }
  }
  #next(): { readonly id: string; readonly due: number } | undefined {
    const all = [...this.#runs].flatMap(([id, state]) => {
      const due = run.deadline?.(state)
      return due === undefined ? [] : [{ id, due }]
    })
    return all.sort((a, b) => a.due - b.due)[0]
  }
  #decide(id: string, name: string, input: Values): Refusal | undefined {
    const arm = actor.decide[name]
    if (!arm) throw new Error(`a run does not decide ${name}`)
    const decision = arm((this.#runs.get(id) ?? null) as never, input as never, this.#cause(id))
    if (isRefusal(decision)) return decision
    const { events, tells = [] } = decision as Decided<RunEvent, unknown>
    let state: unknown = this.#runs.get(id) ?? null
    // The state is built only from stored events, as it is after a restart.
    for (const event of JSON.parse(JSON.stringify(events)) as RunEvent[])
      state = evolve(actor, state, event, this.now)
    this.#runs.set(id, state as RunState | null)
    if (id === this.#id) this.events.push(...events)
    for (const tell of tells) this.#tell(tell)
    for (const { wait_id } of watching(state as RunState | null))
      this.#decide(id, 'event.watched', { wait_id })
    return undefined
  }
  #tell({ to, name, input }: Tell): void {
    if (to.kind === 'run') this.#decide(to.id, name, input as Values)
    else if (name === 'queue.enqueue') {
      const { job } = input as { job: JobHeader }
      if (job.kind === 'opening') return
      this.#jobs.set(job.id, { header: job, failures: 0, taken: false, ended: false })
    } else if (name === 'queue.cancel')
      for (const id of (input as { job_ids: readonly string[] }).job_ids) this.#stop(id)
  }
  /** Ends a job that no worker has claimed. A claimed job ends with the report of its worker. */
  #stop(id: string): void {
    const held = this.#jobs.get(id)
    if (!held || held.taken || held.ended) return
    held.ended = true
    this.#decide(held.header.run_id ?? '', 'job.settled', {
      job_id: id,
      attempt: held.failures,
      outcome: 'cancelled',
    })
  }
  #cause(id: string): Cause {
    return {
      id: 'cmd',
      at: this.now,
      self: { project: 'prj', kind: 'run', id },
      shard: 0,
      principal: { type: 'user', id: 'ada', name: 'Ada' },
      mint: (prefix) => {
        const count = (this.#counts.get(prefix) ?? 0) + 1
        this.#counts.set(prefix, count)
        return `${prefixes[prefix]}_${count}`
      },
      secret: () => 'secret',
    }
  }
}
