/**
 * The table of all kinds of actors, as the shard host uses it. The actors are in the folders of
 * this directory.
 */
import type { Kind } from '../protocol/entry.ts'
import { defaultTriggerLimits, type TriggerLimits } from '../protocol/events/sources.ts'
import type { WorkerTiming } from '../protocol/workers/timing.ts'
import { type AnyActor, defineActor } from './actor.ts'
import { artifactActor } from './artifacts/artifact.ts'
import { artifactKeyActor } from './artifacts/key.ts'
import { blueprintActor } from './blueprints/blueprint.ts'
import { channelActor } from './channels/channel.ts'
import { channelName } from './channels/name.ts'
import type { AccessLimits } from './configuration.ts'
import type { EnvironmentSettings } from './environments/draft.ts'
import { environmentActor } from './environments/environment.ts'
import { environmentName } from './environments/name.ts'
import { eventsActor } from './events/events.ts'
import { interactionActor } from './interactions/interaction.ts'
import { queueActor } from './jobs/queue.ts'
import { triggerHandle } from './loops/http-trigger/handle.ts'
import { loopActor } from './loops/loop.ts'
import { planActor } from './loops/plan/plan.ts'
import { memory } from './memory/memory.ts'
import { preferencesActor } from './preferences/preferences.ts'
import { savedViewsActor } from './preferences/saved-views.ts'
import { organizationActor } from './projects/organization/organization.ts'
import { projectActor } from './projects/project.ts'
import { bulkRequestActor } from './runs/bulk-request.ts'
import { run } from './runs/run.ts'
import { sessionActor } from './sessions/session.ts'
import { tableName } from './tables/name.ts'
import { tableActor } from './tables/table.ts'
import { deliveryActor } from './webhooks/delivery.ts'
import { workerActor } from './workers/worker.ts'

/**
 * Creates the actors of all kinds, by kind.
 * @param settings the configured brand, the timing of workers, and further options.
 * `plan_concurrency`: maximum number of concurrent runs of loops; absent: no limit. `access`:
 * limits on access records. `artifacts`: bytes that artifacts may use (`QuotaOptions`), and the
 * deadline of their uploads. `triggers`: limits on the runs that triggers start for events that
 * runs caused. `table_rows`: maximum number of rows of a table. `environments`: default provider
 * and time limits of environments.
 */
export const actorKinds = (settings: {
  brand: string
  timing: WorkerTiming
  plan_concurrency?: number
  access?: AccessLimits
  artifacts?: { quota_bytes: number; upload_ms?: number }
  triggers?: TriggerLimits
  table_rows?: number
  environments?: EnvironmentSettings
}): Readonly<Record<Kind, AnyActor>> => ({
  organization: defineActor(
    organizationActor({
      brand: settings.brand,
      ...settings.access,
      ...(settings.artifacts && { artifact_quota: settings.artifacts.quota_bytes }),
    }),
  ),
  project: defineActor(projectActor({ brand: settings.brand, ...settings.access })),
  run: defineActor(run),
  bulk_request: defineActor(bulkRequestActor),
  queue: defineActor(queueActor(settings.timing)),
  worker: defineActor(workerActor(settings.timing)),
  interaction: defineActor(interactionActor(settings)),
  channel: defineActor(channelActor(settings)),
  channel_name: defineActor(channelName),
  loop: loopActor(settings),
  trigger_handle: triggerHandle,
  events: defineActor(eventsActor(settings.triggers ?? defaultTriggerLimits)),
  session: defineActor(sessionActor(settings)),
  memory: defineActor(memory),
  table: defineActor(tableActor(settings)),
  table_name: defineActor(tableName),
  delivery: deliveryActor,
  plan: defineActor(planActor(settings)),
  artifact: defineActor(artifactActor(settings)),
  artifact_key: defineActor(artifactKeyActor),
  environment: defineActor(environmentActor(settings)),
  environment_name: defineActor(environmentName),
  blueprint: defineActor(blueprintActor),
  preferences: defineActor(preferencesActor),
  saved_views: defineActor(savedViewsActor(settings)),
})
