/**
 * Final checks: the observations of clients, workers and followers must agree with the journal, and
 * so must the states of the owners.
 */
import type { QueueState } from '../../../actors/jobs/state.ts'
import { waitingJobs } from '../../../actors/jobs/waiting-jobs.ts'
import { actorKey, RECOMPUTED_REPLY } from '../../../nodes/host/memory/actor-instance.ts'
import type { Address, Command, Kind } from '../../../protocol/entry.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import type { Published } from '../../../protocol/events/sources.ts'
import type { Interaction } from '../../../protocol/interactions/schema.ts'
import type { Loop } from '../../../protocol/loops/schema.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import { terminal, type WorkflowRun } from '../../../protocol/runs/schema.ts'
import type { Simulation } from '../simulation.ts'
import type { Past } from './history.ts'
import type { Ledger } from './ledger.ts'
import type { Read, Sent } from './records.ts'
import { sessionUnchanged } from './sessions.ts'

const text = (value: unknown): string => JSON.stringify(value ?? null)

/** Performs all checks. The simulation must be at rest. */
export async function checkAll(sim: Simulation): Promise<void> {
  for (const sent of sim.records.sent.values()) checkAnswers(sim, sent)
  checkReads(sim)
  checkReports(sim)
  checkFeeds(sim)
  checkLedgers(sim)
  await askOwners(sim)
}

/**
 * Checks that every acknowledged command is in the journal with the returned reply, unless the
 * command had nothing to change. Repeats must receive the same reply. If a reply is recomputed, a
 * later record is also accepted.
 */
function checkAnswers(sim: Simulation, { command, answers }: Sent): void {
  const key = actorKey(command)
  const stored = sim.history.commands.get(`${key} ${command.command_id}`)
  const past = sim.history.of(command)
  const say = (what: string) =>
    sim.violated(`${command.name} ${command.command_id} of ${command.id}: ${what}`)
  for (const { from, at, outcome } of answers) {
    if (isRefusal(outcome)) {
      if (outcome.refused === 'internal') say('was answered internal')
      const known = [...sim.records.sent.values()].some(
        (other) =>
          other.command.id === command.id &&
          other.command.name === 'run.start' &&
          other.answers.some((answer) => answer.at <= from && !isRefusal(answer.outcome)),
      )
      if (outcome.refused === 'not_found' && known && !('step_key' in (outcome.details ?? {})))
        say('was answered not_found after the run was acknowledged')
      // The refusal is a violation only if the command was already stored when this attempt was
      // sent. Refusals are not remembered, so otherwise an earlier attempt may have taken effect
      // while this refusal was in transit.
      if (stored && stored.at <= from)
        say(
          `was refused (${outcome.refused}) although it is in the journal at ${stored.place.cursor}`,
        )
    } else if (stored && stored.at <= at) {
      const {
        cursor,
        entry: { reply },
      } = stored.place
      const said =
        reply === RECOMPUTED_REPLY
          ? (past?.entries ?? []).flatMap(({ place, at: then, record }) =>
              place.cursor >= cursor && then <= at ? [record] : [],
            )
          : [text(reply)]
      // An attempt that found nothing to cancel appended no entry. Its answer may arrive after the
      // answer to a later attempt that appended an entry.
      const idle = command.name.startsWith('session.cancel') && from < stored.at
      if (!said.includes(text(outcome.reply)) && !idle)
        say(`was answered ${text(outcome.reply)}, but the journal says ${said.join(' or ')}`)
    } else if (
      !(stored ? stored.at > at : true) ||
      !changedNothing(command, outcome.reply, past, at)
    )
      say(`was acknowledged with ${text(outcome.reply)}, but is not in the journal`)
  }
}
/** Whether a command can have this reply without appending an entry. */
function changedNothing(
  { name, origin, input }: Command,
  reply: unknown,
  past: Past | undefined,
  at: number,
): boolean {
  if (name === 'interaction.cancel') return (reply as Interaction).status === 'cancelled'
  if (name === 'interaction.respond')
    return (reply as Interaction).responses.some(
      ({ responder_user_id }) => responder_user_id === origin.principal.id,
    )
  if (name === 'agent.invoke' || name.startsWith('session.'))
    return sessionUnchanged({ name }, reply)
  if (name === 'event.publish') return (reply as Published).deduped === true
  if (name === 'loop.start')
    return (
      past?.entries.some(
        ({ at: stored, place }) =>
          stored <= at && text(place.entry.events).includes((reply as WorkflowRun).id),
      ) ?? false
    )
  if (name === 'loop.update') return (reply as Loop).status === (input as Loop).status
  const record = reply as WorkflowRun
  if (name === 'run.start') return past?.entries.some((entry) => entry.at <= at) ?? false
  if (name === 'run.signal')
    return (
      past?.entries.some(({ place }) =>
        place.entry.events.some(
          (event) =>
            event.type === 'signal.stored' &&
            text((event as RunEvent).private).includes(
              (reply as { source_event_id: string }).source_event_id,
            ),
        ),
      ) ?? false
    )
  // The published record of a run of a loop has no `cancel_requested`, so the entries are searched.
  const stopping =
    past?.entries.some(
      ({ at: stored, place }) =>
        stored <= at && place.entry.events.some(({ type }) => type === 'run.cancel_requested'),
    ) ?? false
  if (name === 'run.cancel') return stopping || terminal.has(record.status)
  return name === 'run.resume' && stopping
}

/**
 * Checks that every read of a run or an interaction returns a committed state. This state must not
 * be older than any state that was acknowledged or read before the read began.
 */
function checkReads(sim: Simulation): void {
  const seen = new Map<string, { readonly at: number; readonly index: number }[]>()
  for (const read of [...sim.records.reads].sort((a, b) => a.at - b.at)) {
    if (read.to.kind !== 'run' && read.to.kind !== 'interaction') continue
    const key = actorKey(read.to)
    const past = sim.history.of(read.to)
    const entries = past?.entries ?? []
    const known = seen.get(key) ?? []
    let least = acknowledged(sim, past, read)
    for (const { at, index } of known) if (at <= read.from) least = Math.max(least, index)
    const wanted = text(read.reply)
    const states = [
      'null',
      ...entries.filter(({ at }) => at <= read.at).map(({ record }) => record ?? ''),
    ]
    const index = states.findIndex((state, i) => i >= least && state === wanted)
    if (index < 0) {
      const old = states.indexOf(wanted)
      sim.violated(
        `a read of ${read.to.id} from ${read.from.toFixed(1)} to ${read.at.toFixed(1)} shows ` +
          (old < 0
            ? `what is not in the journal: ${wanted}`
            : `state ${old}, but state ${least} was known`),
      )
    } else seen.set(key, [...known, { at: read.at, index }])
  }
}
/**
 * Returns the number of an actor's entries up to the last entry that was acknowledged before a read
 * began.
 */
function acknowledged(sim: Simulation, past: Past | undefined, { from }: Read): number {
  let least = 0
  for (const [i, { place, at }] of (past?.entries ?? []).entries()) {
    const sent = sim.records.sent.get(place.entry.command.id)
    if (
      sent?.answers.some(
        (answer) => answer.at >= at && answer.at <= from && !isRefusal(answer.outcome),
      )
    )
      least = i + 1
  }
  return least
}

/** Checks that every accepted report that completed a job is in the journal, with its result. */
function checkReports(sim: Simulation): void {
  for (const { id, verdict } of sim.records.verdicts) {
    const reported = sim.records.reports.get(id)
    if (!reported || verdict !== 'accepted' || reported.report.status !== 'completed') continue
    const stored = sim.history.commands.get(`${actorKey(reported.to)} ${id}`)
    const settled = stored?.place.entry.events.find(
      (event) =>
        event.type === 'job.completed' && (event as { id?: string }).id === reported.report.job_id,
    ) as { job?: { result?: unknown } } | undefined
    if (!settled)
      sim.violated(
        `report ${id} of ${reported.report.job_id} was accepted, but the journal does not have it`,
      )
    else if (text(settled.job?.result) !== text(reported.report.result))
      sim.violated(`report ${id} of ${reported.report.job_id}: the journal has another result`)
  }
}

/**
 * Checks that every received live entry is committed, and that followers saw every entry once and
 * in order.
 */
function checkFeeds(sim: Simulation): void {
  const stored = new Map<number, unknown>()
  for (const past of sim.history.actors.values())
    if (past.address.kind === 'run' || past.address.kind === 'session')
      for (const { place } of past.entries) stored.set(place.cursor, place.entry.events)
  for (const { cursor, entry } of sim.records.live)
    if (text(stored.get(cursor)) !== text(entry.events))
      sim.violated(
        `published at ${cursor}: ${entry.kind} ${entry.id} ` +
          `${text(entry.events.map(({ type }) => type))}, ` +
          'but the journal has something else there',
      )
  for (const follower of sim.followers) {
    follower.catchUp()
    const all =
      sim.history
        .of({ project: follower.project, kind: follower.kind, id: follower.run })
        ?.entries.map(({ place }) => place.cursor) ?? []
    if (text(all) !== text(follower.seen))
      sim.violated(
        `a follower of ${follower.run} saw ${text(follower.seen)} instead of ${text(all)}`,
      )
  }
}

/**
 * Checks that no tell between ledgers arrived twice, and that the tells of one sender arrived in
 * order.
 */
function checkLedgers(sim: Simulation): void {
  for (const { address, state } of sim.history.actors.values()) {
    if (address.kind !== 'project') continue
    const heard = (state as { ledger?: Ledger }).ledger?.heard ?? []
    const last = new Map<string, number>()
    for (const line of heard) {
      const [from = '', number = ''] = line.split(' ')
      if (Number(number) <= (last.get(from) ?? 0))
        sim.violated(`${address.id} heard ${line} after ${last.get(from)}`)
      last.set(from, Number(number))
    }
  }
}

/**
 * Returns the name of the query to the owner of an actor, and the answer that is expected because
 * of the actor's state in the journal. Returns undefined for kinds that are not queried.
 */
function question(
  sim: Simulation,
  address: Address,
  state: unknown,
): { readonly name: string; readonly wanted: unknown } | undefined {
  const name = (
    {
      run: 'get',
      interaction: 'get',
      session: 'standing',
      queue: 'waiting',
      loop: 'version',
      plan: 'places',
      project: 'ledger',
    } as Partial<Record<Kind, string>>
  )[address.kind]
  if (name === undefined) return undefined
  return {
    name,
    wanted:
      address.kind === 'queue'
        ? waitingJobs(state as QueueState, 64)
        : sim.kinds[address.kind].ask?.[name]?.(state as never, undefined as never, 0),
  }
}

/**
 * Checks that the owners of the queried actors have the states that follow from the journal. If a
 * state has changed since the query was sent, the state at the time of the answer is accepted as
 * well.
 */
async function askOwners(sim: Simulation): Promise<void> {
  const asked = [...sim.history.actors.values()].flatMap((past) => {
    const before = question(sim, past.address, past.state)
    return before ? [{ past, ...before, wanted: text(before.wanted) }] : []
  })
  let left = asked.length
  for (const { past, name, wanted } of asked) {
    void sim.clients.read(past.address, name).then((reply) => {
      if (text(reply) === wanted) return void left--
      sim.history.readOn()
      const now = text(question(sim, past.address, past.state)?.wanted)
      if (text(reply) !== now)
        sim.violated(
          `the owner of ${actorKey(past.address)} says ${text(reply)}, but the journal ${now}`,
        )
      left--
    })
  }
  await sim.timeline.pass(sim.timeline.now + 20_000, () => left === 0)
  if (left > 0) sim.violated(`${left} reads at rest were not answered`)
}
