/**
 * The session actor: one conversation with an agent, and the single writer of its messages, turns,
 * nudges and compactions. This file only assembles the tables of commands, events, effects and
 * reads. A turn is a state machine that advances with each command, such as the model's answer, the
 * end of a tool call, a person's reply, a nudge or a timer. Between commands, the journal contains
 * everything that a turn needs, so any node can continue the turn.
 *
 * The invariants are in the files that maintain them: S (state.ts), L (turns/turns.ts), W
 * (history/window.ts), F (attachments.ts) and T (protocol/sessions/events.ts).
 */
import type { Api } from '../../protocol/api.ts'
import type {
  Attaching,
  Defined,
  Hashed,
  Keyed,
  SessionCommands,
  SessionLocationInput,
} from '../../protocol/sessions/commands.ts'
import type { SessionEvent } from '../../protocol/sessions/events.ts'
import type { Actor } from '../actor.ts'
import { abandon, attach, converted, detach, removed, reserve } from './attachments.ts'
import { cancelNudge, nudge } from './commands/nudge.ts'
import { invoke, startTurn } from './commands/start.ts'
import { evolve } from './evolve.ts'
import { fileAt, listFiles, reactAttachments } from './files.ts'
import { create, standing, succeed } from './find-or-create.ts'
import { openExchange } from './inbound/exchanges.ts'
import { interactionChanged } from './inbound/interactions.ts'
import { jobRetried, jobSettled } from './inbound/jobs.ts'
import { openTurn, stopTurn } from './inbound/turns.ts'
import {
  actionCall,
  compactionProgress,
  generatingRow,
  jobSpec,
  uncommittedResults,
} from './reads.ts'
import { append, cancel, cancelTurn, compact, deadline, remove, update, wake } from './settings.ts'
import { tellMessage } from './source-events.ts'
import { initialSession, type SessionState } from './state.ts'
import { tellChannel, tellEnd, tellSpending } from './turns/report.ts'

type Extra = {
  'agent.invoke': SessionLocationInput & Keyed
  'session.create': SessionLocationInput
  'session.start_turn': Keyed
  'session.nudge': Keyed & Hashed
  'session.append': Partial<Defined>
  'session.compact': Keyed
  'session.attach': Attaching
}

/**
 * Creates the session actor.
 * @param brand the configured brand, the prefix of the names of the service's own tools.
 */
export function sessionActor({
  brand: configured,
}: {
  readonly brand: string
}): Actor<SessionState, SessionEvent, Api, 'session', SessionCommands, Extra> {
  const brand = configured.toLowerCase()
  return {
    kind: 'session',
    initial: initialSession,
    decide: {
      'agent.invoke': invoke(brand),
      'session.create': create(brand),
      'session.start_turn': startTurn(brand),
      'session.update': update(brand),
      'session.delete': remove(brand),
      'session.append': append(brand),
      'session.cancel': cancel(brand),
      'session.cancel_turn': cancelTurn(brand),
      'session.compact': compact(brand),
      'session.nudge': nudge(brand),
      'session.cancel_nudge': cancelNudge(brand),
      'session.succeed': succeed,
      'turn.open': openTurn(brand),
      'turn.stop': stopTurn(brand),
      'exchange.open': openExchange(brand),
      'job.settled': jobSettled(brand),
      'job.retried': jobRetried(brand),
      'interaction.changed': interactionChanged(brand),
      'session.attach': attach,
      'session.detach': detach,
      'attachment.reserve': reserve,
      'attachment.abandon': abandon,
      'attachment.converted': converted,
      'attachment.removed': removed,
      wake: wake(brand),
    },
    evolve,
    react: {
      ...reactAttachments,
      'message.upsert': tellMessage,
      'exchange.answered': tellChannel,
      'turn.reported': tellEnd,
      'turn.spent': tellSpending,
    },
    ask: {
      /**
       * Whether the session is live, and the newest generation of its key. Used to resolve session
       * keys.
       */
      standing,
      /**
       * The input of a job for its worker or executor; null if the session no longer waits for the
       * job.
       */
      job_spec: jobSpec(brand),
      /** The action call of a job, for its executor. */
      action_call: actionCall,
      /** The row that a generation writes, for previews of streaming output. */
      generation: generatingRow,
      /** The progress of the compaction. */
      detail: compactionProgress,
      /** Results of calls whose rows are not committed yet, for gateways that show them early. */
      results: uncommittedResults,
      /** The list of files. */
      attachments: listFiles,
      /** A single file. */
      attachment: fileAt,
    },
    deadline,
    ended: ({ gone }) => gone,
  }
}
