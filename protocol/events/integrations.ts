/**
 * Providers whose webhooks a project can receive, and their entries in the event catalog.
 * `gateway/commands/integrations/` receives the webhooks.
 */
import type { EventCatalog } from './rows.ts'

interface Provider {
  readonly display_name: string
  /**
   * Descriptions of common event types. The keys are the types without their prefix. The provider
   * may send other types.
   */
  readonly events: Readonly<Record<string, string>>
}
export const providers = {
  github: {
    display_name: 'GitHub',
    events: {
      'push.pushed': 'Commits were pushed to a branch or tag',
      'pull_request.opened': 'A pull request was opened',
      'pull_request.synchronize': 'Commits were pushed to the branch of a pull request',
      'pull_request.closed':
        'A pull request was closed; event.pull_request.merged shows whether it was merged',
      'pull_request_review.submitted': 'A review of a pull request was submitted',
      'issues.opened': 'An issue was opened',
      'issues.closed': 'An issue was closed',
      'issue_comment.created': 'A comment was added to an issue or a pull request',
      'release.published': 'A release was published',
      'workflow_run.completed': 'A workflow of GitHub Actions has ended',
    },
  },
  gitlab: {
    display_name: 'GitLab',
    events: {
      'push.pushed': 'Commits were pushed to a branch',
      'tag_push.pushed': 'A tag was pushed or deleted',
      'merge_request.open': 'A merge request was opened',
      'merge_request.update': 'A merge request was changed',
      'merge_request.merge': 'A merge request was merged',
      'merge_request.close': 'A merge request was closed without a merge',
      'issue.open': 'An issue was opened',
      'issue.close': 'An issue was closed',
      'note.create': 'A comment was added to an issue, a merge request, a commit or a snippet',
      'pipeline.updated': 'The status of a pipeline has changed',
    },
  },
} as const satisfies Readonly<Record<string, Provider>>
export type ProviderName = keyof typeof providers

export const isProvider = (name: string): name is ProviderName => Object.hasOwn(providers, name)
/**
 * Returns the name of the project secret that authenticates webhooks of a provider. The project
 * receives the webhooks while the secret exists.
 */
export const integrationSecret = (provider: ProviderName): string => `integrations/${provider}`

/**
 * Returns the providers whose webhooks a project receives.
 * @param secrets names of the secrets of the project.
 */
export const connectedBy = (secrets: readonly string[]): ProviderName[] =>
  Object.keys(providers)
    .filter(isProvider)
    .filter((provider) => secrets.includes(integrationSecret(provider)))

const string = { type: 'string' }
/** Returns the catalog entries of the connected providers. */
export const integrationSources = (connected: readonly ProviderName[]): EventCatalog['items'] =>
  connected.map((prefix) => ({
    prefix,
    kind: 'integration',
    display_name: providers[prefix].display_name,
    description:
      'The payload is the request body of the provider. The provider may also send other event ' +
      'types.',
    readiness: 'ready',
    event_types: Object.entries(providers[prefix].events).map(([name, description]) => ({
      name: `${prefix}.${name}`,
      description,
      event_schema: { type: 'object' },
      meta_schema: {
        type: 'object',
        properties: { delivery_id: string, repository: string, sender: string, action: string },
        required: ['delivery_id'],
      },
    })),
  }))
