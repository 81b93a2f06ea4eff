/**
 * A worker process: it connects through some gateway and executes jobs. In seeds with the fault
 * `workers`, it sometimes misbehaves in the ways listed in `odd`.
 */
import { isRefusal } from '../../../protocol/errors.ts'
import type { JobReport } from '../../../protocol/internal.ts'
import type { WorkerCommands } from '../../../protocol/workers/commands.ts'
import type { ClaimedJob } from '../../../protocol/workers/socket.ts'
import type { Machine } from '../machines/machine.ts'
import type { Simulation } from '../simulation.ts'
import { resultOf } from './model.ts'

/**
 * How a worker treats a job.
 * - complete, fail: it reports that outcome once, and repeats the report only if it is not
 *   acknowledged.
 * - twice: it reports twice.
 * - silent: it neither renews the lease nor reports.
 * - late: it reports after its lease has expired.
 * - stubborn: it continues after losing its lease.
 * - capacity, shutdown: it returns the job.
 * - die: it dies during the job.
 */
type Manner =
  | 'complete'
  | 'fail'
  | 'twice'
  | 'silent'
  | 'late'
  | 'stubborn'
  | 'capacity'
  | 'shutdown'
  | 'die'
const odd: readonly Manner[] = [
  'twice',
  'silent',
  'late',
  'stubborn',
  'capacity',
  'shutdown',
  'die',
]
interface Work {
  readonly token: string
  readonly manner: Manner
  readonly result: NonNullable<JobReport['result']>
  over: boolean
  cancelled: boolean
}

export class Worker {
  readonly id: string
  readonly instance: string
  readonly project: string
  readonly slots: number
  alive = true
  readonly #sim: Simulation
  readonly #work = new Map<string, Work>()
  #machine: Machine | undefined
  #session: string | undefined
  #generation = 0
  #hash = ''
  #attempt = 0

  constructor(sim: Simulation, id: string, instance: string, project: string, slots: number) {
    this.#sim = sim
    this.id = id
    this.instance = instance
    this.project = project
    this.slots = slots
  }

  /**
   * Connects through a machine that is up. After a failure, tries again, possibly through a
   * different machine.
   */
  connect(): void {
    if (!this.alive) return
    const attempt = ++this.#attempt
    const machine = this.#sim.dice.pick(this.#sim.up())
    const again = (ms: number) =>
      void this.#sim.timeline.after(ms, () => {
        if (attempt === this.#attempt && !this.#machine) this.connect()
      })
    again(machine ? 3000 : 300)
    machine?.enter(() => void this.#register(machine, attempt, again))
  }
  async #register(machine: Machine, attempt: number, again: (ms: number) => void): Promise<void> {
    const token_hash = this.#hash || `hash ${this.#sim.unique()}`
    const input: WorkerCommands['worker.register']['input'] = {
      instance: this.instance,
      session: machine.world.id('session'),
      token_hash,
      gateway: machine.id,
      principal_id: 'svc_worker',
      concurrency_limit: this.slots,
      capabilities: [],
      queues: [],
      action_names: [],
      models: [],
      ...(this.#hash && { given_token_hash: this.#hash }),
    }
    const command_id = `g:${this.#sim.unique()}`
    const outcome = await machine.world.command({
      project: this.project,
      kind: 'worker',
      id: this.id,
      name: 'worker.register',
      input,
      command_id,
      origin: { at: machine.world.now(), principal: { type: 'service_account', id: 'svc_worker' } },
    })
    if (!this.alive || attempt !== this.#attempt || !machine.alive) return
    if (isRefusal(outcome)) return again(400)
    const { registration } = outcome.reply as WorkerCommands['worker.register']['reply']
    this.#hash = token_hash
    this.#machine = machine
    this.#session = registration.session
    this.#generation = registration.generation
    machine.hub.sit(this, registration)
  }
  /** Handles the end of the connection to a machine, and reconnects soon afterwards. */
  disconnected(machine: Machine): void {
    if (this.#machine !== machine) return
    this.#machine = undefined
    this.#sim.timeline.after(this.#sim.dice.between(5, 400), () => this.connect())
  }
  /**
   * Breaks the connection while both ends are alive.
   * @param unnoticed milliseconds until the machine notices the break.
   */
  cutOff(unnoticed: number): void {
    const [machine, session, generation] = [this.#machine, this.#session, this.#generation]
    if (!machine || session === undefined) return
    this.#sim.note(() => `${this.instance} loses its connection to ${machine.name}`)
    this.disconnected(machine)
    this.#sim.timeline.after(unnoticed, () =>
      machine.enter(() => machine.hub.leave(session, generation)),
    )
  }
  isOn(machine: Machine, generation: number): boolean {
    return this.#machine === machine && this.#generation === generation
  }
  /**
   * The connection that the registry should show once the simulation is at rest; undefined if the
   * worker is not connected.
   */
  get connection(): { readonly session: string; readonly generation: number } | undefined {
    return this.alive && this.#machine && this.#session !== undefined
      ? { session: this.#session, generation: this.#generation }
      : undefined
  }
  #die(): void {
    this.#sim.note(() => `${this.instance} dies`)
    this.alive = false
    const [machine, session, generation] = [this.#machine, this.#session, this.#generation]
    if (!machine || session === undefined) return
    this.#sim.timeline.after(this.#sim.dice.between(0, 3000), () =>
      machine.enter(() => machine.hub.leave(session, generation)),
    )
  }

  given(job: ClaimedJob): void {
    if (!this.alive || this.#work.get(job.id)?.token === job.lease_token) return
    const { weather, dice } = this.#sim
    const manner: Manner = weather.strikes('workers', 0.35)
      ? (weather.dice('workers').pick(odd) ?? 'fail')
      : !weather.calm && dice.chance(0.12)
        ? 'fail'
        : 'complete'
    const work: Work = {
      token: job.lease_token,
      manner,
      result: resultOf(this.#sim.seed, job),
      over: false,
      cancelled: false,
    }
    this.#work.set(job.id, work)
    this.#sim.note(() => `${this.instance} has ${job.id} under ${job.lease_token}: ${manner}`)
    if (manner === 'die')
      return void this.#sim.timeline.after(dice.between(0, 500), () => this.#die())
    if (manner === 'silent') return
    const lease = job.lease_duration_seconds * 1000
    if (manner !== 'late') this.#beat(job.id, work)
    const wait =
      manner === 'late'
        ? dice.between(1.05, 2.5) * lease
        : dice.chance(0.15)
          ? dice.between(500, 1.5 * lease)
          : dice.between(2, 300)
    this.#sim.timeline.after(wait, () => {
      if (work.over && manner !== 'stubborn') return
      this.#report(job.id, work)
      if (manner === 'twice')
        this.#sim.timeline.after(dice.between(0, 1500), () => this.#report(job.id, work))
    })
  }
  cancelled(job: string): void {
    const work = this.#work.get(job)
    if (work && this.#sim.dice.chance(0.8)) work.cancelled = true
  }
  #beat(job: string, work: Work): void {
    this.#sim.timeline.after(this.#sim.timing.cadence * 1000, () => {
      const machine = this.#machine
      if (!this.alive || work.over) return
      this.#beat(job, work)
      machine?.enter(
        () =>
          void machine.hub.heartbeat(this, job, work.token).then((alive) => {
            if (alive === false) work.over = true
          }),
      )
    })
  }
  /** Sends a report through the current gateway, and repeats it until it is acknowledged. */
  #report(job: string, work: Work): void {
    if (!this.alive) return
    let acknowledged = false
    const machine = this.#machine
    machine?.enter(
      () =>
        void machine.hub.report(this, reportOf(job, work)).then(() => {
          acknowledged = true
          work.over = true
        }),
    )
    this.#sim.timeline.after(machine ? 7000 : 300, () => {
      if (!acknowledged) this.#report(job, work)
    })
  }
}

function reportOf(job_id: string, { token, manner, result, cancelled }: Work): JobReport {
  const lease = { job_id, lease_token: token }
  if (cancelled || manner === 'shutdown') return { ...lease, status: 'cancelled' }
  if (manner === 'fail')
    return { ...lease, status: 'failed', error_type: 'Broken', error_message: 'it broke' }
  if (manner === 'capacity') return { ...lease, status: 'failed', error_type: 'WorkerOverCapacity' }
  return { ...lease, status: 'completed', result }
}
