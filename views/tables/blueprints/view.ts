/** The view of the bindings of resources to blueprints. */

import { type ResourceOwner, resourceFacts } from '../../../protocol/blueprints/types.ts'
import { type Arm, defineView } from '../../define-view.ts'
import { applyAudit } from '../access/audit.ts'
import { applyBindings, bindingPage, resourcesNamed } from './bindings.ts'

const tables = `
CREATE TABLE blueprint_bindings (
  resource TEXT PRIMARY KEY,
  project INTEGER NOT NULL,
  blueprint TEXT NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX blueprint_bindings_of ON blueprint_bindings (project, blueprint, resource);
`

/**
 * The arms for the kinds of actors that own resources. They store the bindings of these resources.
 */
const owners = Object.fromEntries(
  Object.values(resourceFacts).map(({ owner }) => [owner, applyBindings]),
) as Readonly<Record<ResourceOwner, Arm>>

export const blueprints = defineView({
  kinds: { ...owners, blueprint: applyAudit },
  tables,
  queries: {
    blueprint_bindings: ({ store, project }, input) => bindingPage(store, project, input),
    resources_named: ({ store, project }, input) => resourcesNamed(store, project, input),
  },
})
