/**
 * A shard: one single-threaded loop that decides a batch of commands, appends a single envelope,
 * and answers the commands.
 *
 * Invariants:
 * S1. No part of a batch is answered, published or performed before its append is acknowledged,
 *     except offers of jobs to listeners in this process (O2 in `effects/offers.ts`).
 * S2. At most one append is in flight. Messages that arrive meanwhile wait in the mailbox for the
 *     next batch (group commit).
 * S3. An append succeeds only if no other owner has written since this owner's last append
 *     (compare-and-set on the subject's last sequence). Otherwise everything in memory is dropped
 *     and this node stops owning the shard.
 * S4. Queries (`ask`) pass through the mailbox and are answered together with their batch, so they
 *     return committed state only.
 */
import type { Address, Command } from '../../protocol/entry.ts'
import { refuse } from '../../protocol/errors.ts'
import { TransientMap } from '../../protocol/rules/transient-map.ts'
import { subjects } from '../../protocol/subjects.ts'
import { answerQuery } from './actor-query.ts'
import { admitMessage } from './admission.ts'
import { takeOver } from './cluster/takeover.ts'
import { type HostDeps, microtasks, type ShardAnswer, type ShardRequest } from './deps.ts'
import { Batch, outcomeOf } from './durability/batch.ts'
import { Checkpointer } from './durability/checkpointer.ts'
import { Committer } from './durability/commit.ts'
import { LostState } from './durability/lost-state.ts'
import { refusalOf, WriteGate } from './durability/write-gate.ts'
import { Alarm } from './effects/alarm.ts'
import { announce } from './effects/announce.ts'
import { Deadlines } from './effects/deadlines.ts'
import { Effects } from './effects/effects.ts'
import { Offers } from './effects/offers.ts'
import type { LocalShard } from './local-shards.ts'
import { Mailbox } from './mailbox.ts'
import {
  type Answered,
  type AskMessage,
  CommandMessage,
  type MailboxMessage,
  type OpenCommands,
  rejectMessage,
} from './mailbox-message.ts'
import { ActorCache, Unreadable } from './memory/actor-cache.ts'
import { type ActorInstance, actorKey } from './memory/actor-instance.ts'
import type { ActorRequests, OwnerContext, ScheduleTask, ShardPosition } from './shard-context.ts'
import { ShardTime } from './shard-time.ts'

export class Shard implements ActorRequests, LocalShard {
  readonly partition: number
  readonly shard: number
  readonly name: string
  readonly deps: HostDeps
  readonly instances: ActorCache
  readonly checkpointer: Checkpointer
  readonly #context: OwnerContext
  readonly #effects: Effects
  readonly #offers: Offers
  readonly #gate: WriteGate
  readonly #committer: Committer
  readonly #alarm: Alarm
  readonly #mailbox: Mailbox
  /** Tasks that run before the messages of the mailbox. */
  readonly #ahead: MailboxMessage[] = []
  /** Wakes the loop when a message may have become ready. */
  #news: () => void = () => {}
  readonly #asked: OpenCommands = new TransientMap()
  /** The messages of the current batch, until they are answered. */
  #taken: readonly (CommandMessage | AskMessage)[] = []
  #pumping = false
  #open = false
  #unsubscribe: (() => void) | undefined
  readonly #turnEnd: NonNullable<HostDeps['turnEnd']>
  readonly #lost: (reason: string) => void
  readonly #held: () => Promise<boolean>

  /**
   * @param lost called with the reason after `lose` gave up the shard.
   * @param held returns whether this node is still the recorded owner.
   */
  constructor(
    deps: HostDeps,
    partition: number,
    shard: number,
    lost: (reason: string) => void,
    held: () => Promise<boolean> = async () => true,
  ) {
    this.#lost = lost
    this.#held = held
    this.#turnEnd = deps.turnEnd ?? microtasks
    this.deps = deps
    this.partition = partition
    this.shard = shard
    this.name = `${partition}.${shard}`
    const isOpen = () => this.#open
    this.instances = new ActorCache(deps, partition, {
      confirm: () => this.checkpointer.confirm(),
      ended: (key) => this.checkpointer.ended(key),
      isWanted: isOpen,
      onRead: () => this.#news(),
    })
    this.#mailbox = new Mailbox(this.instances)
    const { name, instances } = this
    const context: OwnerContext = {
      deps,
      partition,
      shard,
      name,
      position: { epoch: 0, sequence: 0 },
      instances,
      time: new ShardTime(deps.clock),
    }
    const requests: ActorRequests = {
      submit: (command) => this.submit(command),
      ask: (to, query, input) => this.ask(to, query, input),
      peek: (to, query, input) => this.peek(to, query, input),
    }
    const task: ScheduleTask = (run, fail, ahead) => this.task(run, fail, ahead)
    const lose = (reason: string) => this.lose(reason)
    const note = (instance: ActorInstance) => this.#alarm.note(instance)
    const deadlines = new Deadlines()
    const rejectEffects = () => this.#mailbox.rejectEffects()
    const gate = new WriteGate(context, { isOpen, lose, note, rejectEffects })
    const offers = new Offers(context, requests, gate)
    const effects = new Effects(context, requests, offers)
    this.#alarm = new Alarm(context, { deadlines, gate, isOpen, task, submit: requests.submit })
    this.checkpointer = new Checkpointer(context, {
      cache: instances,
      deadlines,
      effects,
      gate,
      offers,
      task,
      lose,
      owns: async () => (await held()) && this.#open,
    })
    this.#context = context
    this.#gate = gate
    this.#committer = new Committer(context, gate, (entry, characters) =>
      effects.perform(entry, characters),
    )
    this.#offers = offers
    this.#effects = effects
  }
  /** The epoch of this owner, and the sequence of the subject's last envelope. */
  get position(): Readonly<ShardPosition> {
    return this.#context.position
  }
  get open(): boolean {
    return this.#open
  }
  get mailboxMessages(): number {
    return this.#mailbox.length
  }
  /**
   * Takes over the shard: fences older owners, replays, then subscribes. If the fence cannot be
   * stored, or the journal lacks entries, the shard is served, but refuses commands (`WriteGate`).
   * @param epoch higher than the epoch in the previous ownership record.
   */
  async start(epoch: number): Promise<void> {
    const pending = await takeOver(
      this.#context,
      { checkpointer: this.checkpointer, gate: this.#gate, held: this.#held },
      epoch,
    )
    this.#open = true
    const { bus, local } = this.deps
    const { partition, shard } = this
    const here = local?.add(partition, shard, this)
    const own = bus.subscribe(subjects.shard(partition, shard), (message) => this.hear(message))
    const demand = bus.subscribe(subjects.demandAll, (message) =>
      this.#offers.kickProject((message as { project: string }).project),
    )
    this.#unsubscribe = () => [here, own, demand].forEach((end) => void end?.())
    if (this.#gate.latched) return this.#gate.watch()
    for (const instance of this.instances.all()) this.#alarm.note(instance)
    this.#effects.begin(pending)
    this.checkpointer.start()
    this.#offers.start()
    this.#alarm.arm()
  }

  /**
   * Gives up the shard gracefully: waits for work in flight, then writes snapshots and the
   * checkpoint. Most snapshots are written earlier, while the shard still answers.
   */
  async stop(): Promise<void> {
    // No flush: nothing has changed since the gate closed, and the storage accepts no writes.
    if (this.#gate.closed()) return this.drop()
    if (this.#open) await this.checkpointer.flush()
    if (!this.#open) return
    this.#unsubscribe?.()
    this.#offers.stop()
    await new Promise<void>((done) => this.task(done, done))
    await this.#effects.drain()
    this.#effects.stop()
    await this.checkpointer.stop(true)
    this.#close()
  }
  /**
   * Gives up the shard immediately: drops its memory and rejects all waiting callers (`not_owner`).
   */
  drop(): void {
    this.#unsubscribe?.()
    this.#offers.stop()
    this.#effects.stop()
    void this.checkpointer.stop(false)
    this.#close()
  }
  #close(): void {
    this.#open = false
    this.#alarm.stop()
    this.#gate.stop()
    for (const mailboxMessage of this.#ahead.splice(0)) rejectMessage(mailboxMessage)
    this.#mailbox.close()
    this.#news()
  }

  /**
   * Handles a message from the bus. Commands of one list are decided separately, in order. A
   * message that is malformed or not for this shard is refused as `not_found`.
   */
  hear(message: unknown): Promise<ShardAnswer | ShardAnswer[]> {
    if (!admitMessage(message, this, this.deps)) return Promise.resolve(refuse('not_found'))
    return message.type === 'commands'
      ? Promise.all(message.commands.map((command) => this.submit(command)))
      : new Promise((answer) => this.receive(message, answer))
  }
  receive(request: ShardRequest, answer: Answered): void {
    if (request.type === 'command') this.decide(request.command, answer)
    else {
      const { to, name, input } = request
      this.#post({ type: 'ask', to, key: actorKey(to), name, input, answer })
    }
  }
  /**
   * Decides a command. A repeat that arrives while the first copy waits gets the same answer, so a
   * sender that retries causes no extra work.
   */
  decide(command: Command, answer: Answered): void {
    const same = this.#asked.get(command.command_id)
    if (same?.isRepeatedBy(command)) same.join(answer)
    else this.#post(new CommandMessage(command, this.#asked, answer))
  }
  submit(command: Command): Promise<ShardAnswer> {
    return new Promise((answer) => this.decide(command, answer))
  }
  ask(to: Address, name: string, input: unknown): Promise<ShardAnswer> {
    return new Promise((answer) => this.receive({ type: 'ask', to, name, input }, answer))
  }
  peek(to: Address, name: string, input: unknown): { readonly result: unknown } | undefined {
    const instance = this.instances.loaded(to)
    const arm = instance?.actor.ask?.[name]
    const { at } = this.#context.time
    return instance && arm && { result: arm(instance.state as never, input as never, at) }
  }
  /** Calls `run` while no append is in flight (`ScheduleTask`). */
  task(run: () => void, fail: () => void = () => {}, ahead = false): void {
    this.#post({ type: 'task', run, fail }, ahead)
  }
  #post(mailboxMessage: MailboxMessage, ahead = false): void {
    if (!this.#open) return void rejectMessage(mailboxMessage)
    const stop = this.#gate.unreadable ? this.#gate.closed() : undefined
    if (stop && mailboxMessage.type === 'ask') return void mailboxMessage.answer(refusalOf(stop))
    if (ahead) this.#ahead.push(mailboxMessage)
    else this.#mailbox.post(mailboxMessage, this.#pumping)
    if (this.#pumping) this.#news()
    else {
      this.#pumping = true
      const start = mailboxMessage.type === 'command' ? this.#turnEnd.decide : queueMicrotask
      start(() => void this.#pump())
    }
  }
  /**
   * Gives up the shard immediately, because another owner was found, or the stored or in-memory
   * state can no longer be trusted.
   */
  lose(reason: string): void {
    if (!this.#open) return
    this.drop()
    this.#lost(reason)
  }

  async #pump(): Promise<void> {
    try {
      while (this.#mailbox.length + this.#ahead.length > 0 && this.#open) {
        for (const mailboxMessage of this.#ahead.splice(0))
          if (mailboxMessage.type === 'task') mailboxMessage.run()
        this.#gate.begin()
        const ready = this.#mailbox.ready()
        if (ready.length > 0) {
          await this.#turn(ready)
          await new Promise<void>((done) => this.#turnEnd.decide(done))
        } else if (this.#mailbox.length > 0 && this.#ahead.length === 0)
          await new Promise<void>((news) => {
            this.#news = news
          })
      }
    } catch (error) {
      this.#fail(error)
      for (const mailboxMessage of this.#taken) rejectMessage(mailboxMessage)
    } finally {
      this.#pumping = false
    }
  }

  /** Gives up the shard after an error. Lost state is expected, for example after a pause. */
  readonly #fail = (error: unknown): void => {
    const cause = error instanceof Unreadable ? error.cause : error
    if (cause instanceof LostState) return void this.lose(cause.message)
    this.deps.log.error(
      { event: 'shard_loop_failed', err: error, shard: this.name },
      'shard loop failed',
    )
    this.lose('shard loop failed')
  }

  /**
   * Processes one batch: takes messages, decides, appends, answers.
   * @param ready the messages of the mailbox that can be decided now, in order.
   */
  async #turn(ready: readonly MailboxMessage[]): Promise<void> {
    const { at } = this.#context.time
    const batch = new Batch(this.deps, this.shard, at, (address) => this.instances.get(address))
    const answers: ShardAnswer[] = []
    const waiting: (CommandMessage | AskMessage)[] = []
    let taken = 0
    for (; taken < ready.length && !batch.full && this.#open; taken++) {
      const mailboxMessage = ready[taken] as MailboxMessage
      if (mailboxMessage.type === 'task') {
        if (batch.entries.length > 0) break
        mailboxMessage.run()
        continue
      }
      const given =
        mailboxMessage.type === 'ask'
          ? answerQuery(this.deps, this.instances, mailboxMessage, at)
          : (this.#gate.refusal(mailboxMessage.command) ??
            batch.decide(mailboxMessage.command, this.instances.find(mailboxMessage.key)))
      const answer = given instanceof Promise ? await given : given
      if (mailboxMessage.type === 'command' && !('not_owner' in answer))
        this.deps.measure.command(mailboxMessage.command.kind, outcomeOf(answer))
      answers.push(answer)
      waiting.push(mailboxMessage)
    }
    // If the shard was given up, all messages of the mailbox, including these, were rejected.
    if (!this.#open) return
    this.#mailbox.take(ready, taken)
    this.#taken = waiting
    await this.#offers.ahead(batch)
    const announcement = batch.entries.length > 0 ? await this.#commit(batch) : undefined
    this.#taken = []
    if (announcement === 'not_owner') return waiting.forEach(rejectMessage)
    // A batch without changes appends nothing, so only a fresh lease proves that its answers are
    // not outdated.
    if (batch.entries.length === 0 && waiting.length > 0 && !this.deps.fresh())
      waiting.forEach(rejectMessage)
    else for (let i = 0; i < waiting.length; i++) waiting[i]?.answer(answers[i] as ShardAnswer)
    if (announcement) this.#turnEnd.defer(announcement)
    for (const instance of batch.touched) this.#alarm.note(instance)
    this.#alarm.arm()
    this.checkpointer.release(batch.touched)
    if (batch.torn) this.lose('an actor failed during a decision')
  }

  /** Commits a batch. Returns its announcement, or `not_owner` if the shard was given up. */
  async #commit(batch: Batch): Promise<(() => void) | 'not_owner'> {
    if (!this.#open) return 'not_owner'
    const committed = await this.#committer.commit(batch)
    if (typeof committed === 'string') {
      const reason =
        committed === 'conflict' ? 'another node owns the shard' : 'the storage rejects writes'
      this.lose(reason)
      // Senders retry. If the storage rejected the write, the shard is soon taken over again.
      return 'not_owner'
    }
    return () => announce(this.deps.bus, committed, batch, this.#fail)
  }
}
