/** The view of agents, toolkits and skills. */
import { defineView } from '../../define-view.ts'
import { agentGet, agentHome, agentList, applyAgents } from './agents.ts'
import { applyDefinitions, definitionGet, definitionList, skillUsage } from './toolkits.ts'

const tables = `
CREATE TABLE agents (
  id TEXT PRIMARY KEY,
  project INTEGER NOT NULL,
  name TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX agents_new ON agents (project, created_at, id);
CREATE TABLE definitions (
  id TEXT PRIMARY KEY,
  project INTEGER NOT NULL,
  type TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX definitions_new ON definitions (project, type, created_at, id);
CREATE TABLE skilled (
  skill TEXT NOT NULL,
  project INTEGER NOT NULL,
  agent TEXT NOT NULL,
  PRIMARY KEY (skill, project, agent)
) WITHOUT ROWID;
CREATE INDEX skilled_agent ON skilled (agent);
CREATE INDEX agents_name ON agents (project, name);
`

export const agents = defineView({
  kinds: { organization: applyDefinitions, project: [applyAgents, applyDefinitions] },
  tables,
  queries: {
    'agent.list': ({ store, project }, input) => agentList(store, project, input),
    'agent.get': ({ store, project }, input) => agentGet(store, project, input),
    'toolkit.list': ({ store, project }) => definitionList(store, project, 'toolkit'),
    'toolkit.get': ({ store, project }, input) => definitionGet(store, project, 'toolkit', input),
    'skill.list': ({ store, project }) => definitionList(store, project, 'skill'),
    'skill.get': ({ store, project }, input) => definitionGet(store, project, 'skill', input),
    'skill.list_organization': ({ store, project }) => definitionList(store, project, 'skill'),
    'skill.get_organization': ({ store, project }, input) =>
      definitionGet(store, project, 'skill', input),
    skill_usage: ({ store }, input) => skillUsage(store, input),
    agent_home: ({ store }, { agent_id }) => agentHome(store, agent_id),
  },
})
