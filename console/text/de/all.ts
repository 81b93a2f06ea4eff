/** All German texts by part. */
import type { Translation } from '../messages.ts'
import { access, account, signIn } from './access.ts'
import { agents } from './agents.ts'
import { actions, build, events, tags, workflows } from './build.ts'
import { artifacts, tables } from './data.ts'
import { environments } from './environments.ts'
import { api, chart, design, editor, form, graph, people, preview, shell, views } from './frame.ts'
import { loops } from './loops.ts'
import { blueprints, webhooks } from './operate.ts'
import { audit, home, organization, resolver, settings, workers } from './organization.ts'
import { runList } from './run-list.ts'
import { action, compare, run, runs, waiting } from './runs.ts'
import { conversation, sessions } from './sessions.ts'
import { channels, inbox } from './work.ts'

const all: Translation = {
  access,
  account,
  actions,
  agents,
  api,
  artifacts,
  audit,
  blueprints,
  build,
  channels,
  chart,
  conversation,
  design,
  editor,
  environments,
  events,
  form,
  graph,
  home,
  inbox,
  loops,
  organization,
  people,
  preview,
  resolver,
  run,
  'run-actions': action,
  'run-compare': compare,
  'run-list': runList,
  'run-waiting': waiting,
  runs,
  sessions,
  settings,
  shell,
  'sign-in': signIn,
  tables,
  tags,
  views,
  webhooks,
  workers,
  workflows,
}
export default all
