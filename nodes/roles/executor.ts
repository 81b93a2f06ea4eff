/** The executor role: executes the jobs of the service itself with the handlers of this release. */
import type { Directory } from '../../gateway/directory.ts'
import type { World } from '../../gateway/ports.ts'
import { conversionsOf } from '../../gateway/sessions/conversions.ts'
import { openPreviews } from '../../gateway/sessions/transcript/previews.ts'
import { subjects } from '../../protocol/subjects.ts'
import type { EmbeddingRequest } from '../../protocol/tables/semantic.ts'
import type { GatewayMessage, Offer } from '../../protocol/workers/messages.ts'
import { builtinActions, firstOf } from '../executor/builtin/builtin.ts'
import { deliveries } from '../executor/deliveries/deliveries.ts'
import { createConverter } from '../executor/documents/converter.ts'
import { hashedEmbedding } from '../executor/embedding/hashed.ts'
import { createEmbeddingService } from '../executor/embedding/serve.ts'
import { errands } from '../executor/errands/errands.ts'
import { type Executor, startExecutor } from '../executor/executor.ts'
import { generations } from '../executor/generation.ts'
import { httpActions } from '../executor/http-action.ts'
import { remoteEmbedding } from '../executor/models/embedding.ts'
import { keyFaults } from '../executor/models/provider.ts'
import { remoteModel } from '../executor/models/remote.ts'
import { createOpeningHandler } from '../executor/openings.ts'
import { previews } from '../executor/preview.ts'
import { scriptedModel } from '../executor/scripted/model.ts'
import type { GenerateAnswer } from '../executor/speech.ts'
import { answerEach } from '../host/effects/pushes.ts'
import type { Bus } from '../host/ports.ts'
import type { ModelSettings } from '../models.ts'
import type { Guard } from '../outbound/guard.ts'
import { createPost } from '../outbound/post.ts'
import { TIMEOUT_MS } from './embed.ts'

interface Role {
  readonly world: World
  readonly bus: Bus
  readonly directory: Directory
  readonly guard: Guard
  readonly limit: number
  readonly models: ModelSettings
  /** Environment variables, which may contain the API keys of providers. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/**
 * Starts answering requests for embeddings, if a model is configured. Returns a function that stops
 * answering them.
 */
function serveEmbeddings({ world, bus, models, env }: Role): () => void {
  const { embedding } = models
  if (!embedding) return () => {}
  const service = createEmbeddingService({
    model: embedding.id,
    embed:
      embedding.access.kind === 'scripted'
        ? hashedEmbedding
        : remoteEmbedding({ settings: embedding, env, timeout: TIMEOUT_MS, now: world.now }),
    log: world.log,
  })
  const unsubscribe = bus.subscribe(
    subjects.embed,
    (message) => service.answer(message as EmbeddingRequest),
    subjects.serveGroup,
  )
  return () => {
    unsubscribe()
    service.stop()
  }
}

/**
 * Logs each provider of models whose key is missing. The key is read again for each generation, so
 * it may be set later.
 */
async function warnOfKeys({ world, models, env }: Role): Promise<void> {
  for (const { provider, reason } of await keyFaults(models.access, env))
    world.log.warn(
      { event: 'model_key_unavailable', provider, reason },
      'a provider of models has no key',
    )
}

/** Milliseconds for which the chunks of an answer are retained after the answer is complete. */
const LINGER_MS = 1000

/** Milliseconds for which a generation waits for the conversion of the files of its session. */
const CONVERSION_TIMEOUT_MS = 30_000

/**
 * Starts executing the jobs of the service itself. Returns a function that stops the executor
 * gracefully.
 */
export function startExecutorRole(role: Role): () => Promise<void> {
  const { world, bus, directory, guard, limit, models, env } = role
  const mailbox = subjects.executor(world.node)
  const post = createPost(guard)
  const shown = openPreviews(world)
  // Chunks are retained for a while after the end, so that followers that join late still receive
  // the chunks of a quick answer whose message is not stored yet.
  const publisher = {
    publish: shown.publish,
    end: (job_id: string, attempt?: string) =>
      void world.later(LINGER_MS, () => shown.end(job_id, attempt)),
  }
  const executor: Executor = startExecutor({
    world,
    mailbox,
    limit,
    handlers: {
      action_execution: firstOf(
        builtinActions({ world, directory }),
        httpActions({ world, directory, post }),
      ),
      llm_generation: generations({
        models: models.models,
        speakers: speakersOf({ world, models, env }),
        preview: previews(publisher, world.later),
        files: world.files,
        conversions: (project, session_id, signal) =>
          conversionsOf(world, project, session_id, CONVERSION_TIMEOUT_MS, signal),
        log: world.log,
        now: world.now,
      }),
      delivery: deliveries({ world, directory, post }),
      opening: createOpeningHandler({ world, directory }),
      errand: errands({ world, directory }, createConverter(world.later)),
    },
    listen: (handler) =>
      bus.subscribe(subjects.serveAll, (message) => handler(message as Offer), subjects.serveGroup),
  })
  const receive = (message: GatewayMessage): { ok: boolean } => {
    if (message.type !== 'forget') return executor.receive(message)
    directory.forget(message.project)
    return { ok: true }
  }
  const deaf = bus.subscribe(subjects.gateway(mailbox), (message) => answerEach(message, receive))
  // A change to a project's configuration may allow the service itself to execute waiting jobs.
  const unwatch = directory.onChange((id) => {
    if (id !== undefined && id !== world.organization()) world.demand(id)
  })
  const stopEmbeddings = serveEmbeddings(role)
  void warnOfKeys(role)
  return async () => {
    unwatch()
    stopEmbeddings()
    await executor.stop()
    shown.stop()
    deaf()
  }
}

const speakersOf = ({
  world,
  models,
  env,
}: Pick<Role, 'world' | 'models' | 'env'>): Readonly<Record<string, GenerateAnswer>> =>
  Object.fromEntries(
    models.access.map((access) => [
      access.provider,
      access.kind === 'scripted'
        ? scriptedModel(world.later)
        : remoteModel({
            access,
            env,
            silence: models.silence,
            now: world.now,
            spread: () => (world.random(1)[0] ?? 0) / 255,
          }),
    ]),
  )
