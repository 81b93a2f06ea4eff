/** Derives the settings of a gateway from the settings of its node. */
import type { GatewaySettings } from '../../gateway/ports.ts'
import type { Config } from '../config.ts'
import { urlOf } from '../process/port-fault.ts'
import { version } from '../version.ts'
import { providerNames } from './environments.ts'

/** Returns the settings of a node's gateway. Actors and executors use some of them as well. */
export function gatewaySettings(config: Config): GatewaySettings {
  const publicUrl =
    config.public_url ?? (config.port === 0 ? undefined : urlOf(config, config.port))
  return {
    brand: config.brand,
    key_prefix: config.key_prefix,
    shards: config.shards,
    deadline: config.deadline,
    rate: config.rate,
    timing: config.timing,
    keepalive: config.keepalive,
    cors: config.cors,
    version,
    models: config.models.models,
    ...(config.inbox_domain !== undefined && { inbox_domain: config.inbox_domain }),
    inbound_mail: config.mail !== undefined,
    run_list: config.run_list,
    metrics: config.metrics,
    ...(publicUrl !== undefined && { public_url: publicUrl }),
    ...(config.anonymous_worker && { anonymous_worker: config.anonymous_worker }),
    sessions: config.sessions,
    artifacts: config.artifacts,
    job_logs: config.logs.job,
    environments: providerNames(config.environments),
    console: config.console.sessions,
  }
}
