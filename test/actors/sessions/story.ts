/**
 * Runs a session actor with real interaction actors for its questions, and real artifact actors for
 * its files. Tests end its queued jobs. Messages between the session and these actors are applied
 * immediately, as if in one commit.
 */

import { type Cause, defineActor, type Effect, type Tell } from '../../../actors/actor.ts'
import { artifactActor } from '../../../actors/artifacts/artifact.ts'
import { interactionActor } from '../../../actors/interactions/interaction.ts'
import { sessionActor } from '../../../actors/sessions/session.ts'
import type { SessionState } from '../../../actors/sessions/state.ts'
import type { ArtifactState } from '../../../protocol/artifacts/commands.ts'
import type { Event } from '../../../protocol/entry.ts'
import type { JobHeader } from '../../../protocol/jobs/rows.ts'
import type { SessionEvent } from '../../../protocol/sessions/events.ts'
import type { TurnUpsert } from '../../../protocol/sessions/schema.ts'
import type { GrantedTool, TurnDefinition } from '../../../protocol/sessions/turns/definition.ts'
import { given, type Outcome, type Scene, START } from '../../support/given.ts'

type Open = Record<string, unknown>
const brand = 'Service'
const actor = defineActor(sessionActor({ brand }))
export const tool = (
  name: string,
  annotations: GrantedTool['annotations'] = {},
  more: Partial<GrantedTool> = {},
): GrantedTool => ({ name, annotations, kind: 'worker', ...more })
/**
 * Returns a definition with these tools, each of which is presented to the model as a separate
 * tool.
 */
export const definition = (
  tools: readonly GrantedTool[] = [],
  more: Partial<TurnDefinition> = {},
): TurnDefinition => ({
  agent_id: 'agt_1',
  agent_name: 'Bot',
  scope: { org_id: 'org_1', project_id: 'prj_1' },
  instructions: 'Be brief.',
  route: { mode: 'worker', provider: 'local', model: 'm' },
  timeout_seconds: 600,
  tool_presentation: 'flat',
  tools,
  skills: [],
  compaction: { strategy: 'disabled', threshold_tokens: 1000 },
  ...more,
})
export const say = (text: string): Open => ({ type: 'text', text })
export const use = (id: string, name: string, input: Open = {}): Open => ({
  type: 'tool_use',
  id,
  name,
  input,
})
const ASK = 'service_ask_person'
export const ask = (id: string, more: Open = {}): Open =>
  use(id, ASK, { title: 'Really?', kind: 'request_approval', ...more })
export const message = (content: readonly Open[], more: Open = {}): Open => ({
  llm_response: {
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content,
    stop_reason: content.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn',
    usage: { input_tokens: 10, output_tokens: 5 },
    ...more,
  },
})

export class Story {
  session: Scene<SessionState> = given<SessionState>(actor)
  readonly questions = new Map<string, Scene<unknown>>()
  readonly artifacts = new Map<string, Scene<ArtifactState | null>>()
  readonly artifactEffects: Effect[] = []
  /** Queued jobs that have neither ended nor been cancelled, by id. */
  readonly jobs = new Map<string, JobHeader>()
  at = START
  last: Outcome<SessionState> | undefined
  readonly log: SessionEvent[] = []

  /**
   * Sends a command to the session. Returns the code of the refusal, or undefined if it succeeds.
   */
  do(name: string, input: Open, cause: Partial<Cause> = {}): string | undefined {
    const after = this.#session(name, input, cause)
    this.last = after
    if (after.refused) return after.refused.refused
    this.#follow(after.tells)
    return undefined
  }
  #session(name: string, input: unknown, cause: Partial<Cause> = {}): Outcome<SessionState> {
    const after = this.session.when(name, input, {
      at: this.at,
      self: { project: 'prj_1', kind: 'session', id: 'ses_1' },
      ...cause,
    })
    this.session = after
    this.log.push(...(after.events as unknown as SessionEvent[]))
    return after
  }
  #follow(tells: readonly Tell[]): void {
    for (const { to, name, input } of tells) {
      if (to.kind === 'queue') this.#queue(name, input as Open)
      else if (to.kind === 'interaction') this.question(to.id, name, input as Open)
      else if (to.kind === 'artifact') {
        const refused = this.artifact(to.id, name, input as Open)
        if (refused) throw new Error(`${name} of ${to.id} was refused: ${refused}`)
      } else if (to.kind === 'session' && to.id === 'ses_1')
        this.#follow(this.#session(name, input).tells)
    }
  }
  #queue(name: string, input: Open): void {
    if (name === 'queue.enqueue') {
      const job = input['job'] as JobHeader
      if (this.jobs.has(job.id)) throw new Error(`${job.id} was queued twice`)
      this.jobs.set(job.id, job)
    } else for (const id of input['job_ids'] as string[]) this.jobs.delete(id)
  }
  question(id: string, name: string, input: Open, cause: Partial<Cause> = {}): string | undefined {
    const scene =
      this.questions.get(id) ?? given(defineActor(interactionActor({ brand: 'Service' })))
    const after = scene.when(name, input, {
      at: this.at,
      self: { project: 'prj_1', kind: 'interaction', id },
      ...cause,
    })
    this.questions.set(id, after)
    if (after.refused) return after.refused.refused
    this.#follow(after.tells)
    return undefined
  }

  artifact(id: string, name: string, input: Open): string | undefined {
    const scene =
      this.artifacts.get(id) ?? given<ArtifactState | null>(defineActor(artifactActor({ brand })))
    const after = scene.when(name, input, {
      at: this.at,
      self: { project: 'prj_1', kind: 'artifact', id },
    })
    this.artifacts.set(id, after)
    this.artifactEffects.push(...after.effects)
    if (after.refused) return after.refused.refused
    this.#follow(after.tells)
    return undefined
  }

  invoke(text = 'hello', more: Open = {}, use_: TurnDefinition = definition()): string | undefined {
    const { input, ...rest } = more
    return this.do('agent.invoke', {
      agent_ref: { id: 'agt_1' },
      input: { content: [say(text)], ...(input as Open) },
      place: {
        root: 'ses_1',
        generation: 0,
        session_key: 'default',
        agent_id: 'agt_1',
        agent_name: 'Bot',
      },
      definition: use_,
      ...rest,
    })
  }
  job(kind: JobHeader['kind'] = 'llm_generation'): JobHeader {
    const job = [...this.jobs.values()].find((one) => one.kind === kind)
    if (!job)
      throw new Error(
        `there is no ${kind}; there are ${[...this.jobs.values()].map((one) => one.kind).join()}`,
      )
    return job
  }
  answers(...content: Open[]): void {
    this.settle(this.job(), { outcome: 'completed', result: message(content) })
  }
  settle({ id }: { readonly id: string }, outcome: Open): void {
    this.jobs.delete(id)
    this.do('job.settled', { job_id: id, attempt: 1, ...outcome })
  }
  spec(job: JobHeader): Open {
    return this.session.ask('job_spec', { job_id: job.id }) as Open
  }
  turn(n = 1): TurnUpsert {
    const all = this.log
      .filter((event) => event.type === 'turn.upsert')
      .filter(({ seq }) => seq === n)
    const last = all.at(-1)
    if (!last) throw new Error(`there is no turn ${n}`)
    return last
  }
  /** Returns the final messages of the log as `role: blocks`. */
  rows(): string[] {
    return this.log.flatMap((event) =>
      event.type === 'message.upsert' && event.status === 'final'
        ? [
            `${event.role}: ` +
              event.content
                .map((block) =>
                  'text' in block
                    ? block.text
                    : 'name' in block
                      ? block.name
                      : 'tool_use_id' in block
                        ? `${block.tool_use_id}=${String(block.content)}`
                        : block.type,
                )
                .join(' '),
          ]
        : [],
    )
  }
  types(from = 0): string[] {
    return (this.log as readonly Event[]).slice(from).map(({ type }) => type)
  }
  pass(ms: number): void {
    this.at += ms
  }
}
export function begun(text?: string, more: Open = {}, use_: TurnDefinition = definition()): Story {
  const story = new Story()
  const refused = story.invoke(text, more, use_)
  if (refused) throw new Error(refused)
  return story
}
