/**
 * The organization actor: the single writer of the organization's configuration. This comprises
 * keys, projects and their handles, claims on workflow handles, skills, actions, device sign-ins,
 * console sessions, artifact storage and the definition resolver. There is exactly one
 * organization, which exists after `organization.init`. This file contains the actor's tables. The
 * decisions are in the other files of this folder.
 */

import type {
  ConsoleEvent,
  ConsoleOwner,
  SignInCode,
} from '../../../protocol/access/console-rows.ts'
import type { DeviceEvent } from '../../../protocol/access/device-rows.ts'
import type { KeyEvent, KeyMaterial } from '../../../protocol/access/rows.ts'
import type { OrganizationActionEvent } from '../../../protocol/actions/organization-rows.ts'
import type { NewSecret } from '../../../protocol/actions/rows.ts'
import type { SkillHoldEvent, SkillSeen } from '../../../protocol/agents/capabilities.ts'
import type { Api } from '../../../protocol/api.ts'
import type { QuotaCommands } from '../../../protocol/artifacts/commands.ts'
import type { QuotaEvent } from '../../../protocol/artifacts/events.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { ClaimEvent, OrganizationCommands } from '../../../protocol/projects/configuration.ts'
import type { OrganizationProjectEvent } from '../../../protocol/projects/rows.ts'
import type { ResolverEvent, ResolverExtra } from '../../../protocol/resolver/rows.ts'
import { shownResolver } from '../../../protocol/resolver/schema.ts'
import type { SkillBody, SkillEvent } from '../../../protocol/skills/schema.ts'
import type { Actor, Cause, Decision } from '../../actor.ts'
import { evolveKeys, evolveRecord, returningSecret } from '../../configuration.ts'
import { createSkill, replaceSkill } from '../skills.ts'
import {
  activateSecret,
  nextRetirement,
  retire,
  revokeSecret,
  rotateSecret,
} from './action-secrets.ts'
import { actionOf, createAction, deleteAction, evolveActions, updateAction } from './actions.ts'
import {
  evolveStorage,
  refundStorage,
  releaseStorage,
  reserveStorage,
  settleStorage,
  storageOf,
} from './artifact-quota.ts'
import {
  accountUsers,
  createLink,
  endConsole,
  endSession,
  lastUsed,
  nextConsoleEnd,
  openSession,
  putAccount,
  revokeSession,
  revokeSessions,
  sessionOf,
  sessionsOf,
} from './console-sessions.ts'
import { evolveConsole } from './console-state.ts'
import {
  answerDevice,
  type DeviceAnswerer,
  deviceOf,
  endDevices,
  evolveDevices,
  nextDeviceEnd,
  pollDevice,
  redeemDevice,
  requestDevice,
} from './devices.ts'
import { holderOf, nextQuestion, question, release, reserve } from './handles.ts'
import { createOrganizationKey, newKey, revokeOrganizationKey } from './keys.ts'
import { createProject, deleteProject, newProject, updateProject } from './projects.ts'
import { evolveResolver, putOrigins, putResolver } from './resolver.ts'
import {
  deleteOrganizationSkill,
  evolveHolds,
  grantsOf,
  holdSkills,
  letGo,
  skillsOf,
} from './skills.ts'
import {
  directoryOf,
  initialOrganization,
  type OrganizationOptions,
  type OrganizationState,
  QUERY_AFTER_MS,
} from './state.ts'

type OrganizationEvent =
  | OrganizationProjectEvent
  | KeyEvent
  | ClaimEvent
  | SkillEvent
  | SkillHoldEvent
  | OrganizationActionEvent
  | DeviceEvent
  | ConsoleEvent
  | QuotaEvent
  | ResolverEvent
/** Data that the gateway adds to the input of rows, by row name. */
type Extra = {
  'key.create_organization': KeyMaterial
  'skill.import_organization': { readonly skill: SkillBody }
  'skill.delete_organization': SkillSeen
  'device.answer': DeviceAnswerer
  'console_session.revoke': ConsoleOwner
  'console_session.revoke_all': ConsoleOwner
  'sign_in_link.create': SignInCode
  'organization_action.create': NewSecret
  'organization_action.rotate_secret': NewSecret
  'resolver.put': ResolverExtra
}

function init(
  state: OrganizationState,
  { name, project_id, root_key }: OrganizationCommands['organization.init']['input'],
  cause: Cause,
): Decision<OrganizationEvent, undefined> {
  if (state.id !== '') return { events: [], reply: undefined }
  const key = newKey(root_key.id, root_key.key_prefix, { name: 'root', role: 'Owner' }, cause)
  return {
    events: [
      { type: 'organization.created', id: cause.self.id, name },
      {
        type: 'project.created',
        id: project_id,
        project: newProject(project_id, 'default', { name: 'default' }, cause),
      },
      { type: 'key.created', id: key.id, key, hash: root_key.hash },
    ],
    reply: undefined,
  }
}

const project = evolveRecord('projects', 'project')
const skill = evolveRecord('skills', 'skill')
const skills = ({ brand }: OrganizationOptions) => ({ brand, source: 'organization' }) as const

/** Creates the organization actor. */
export const organizationActor = (
  options: OrganizationOptions,
): Actor<
  OrganizationState,
  OrganizationEvent,
  Api,
  'organization',
  OrganizationCommands & QuotaCommands,
  Extra
> => ({
  kind: 'organization',
  initial: initialOrganization,
  decide: {
    'organization.init': init,
    'project.create': (state, input, cause) => createProject(options, state, input, cause),
    'project.update': (state, input, cause) => updateProject(options, state, input, cause),
    'project.delete': deleteProject,
    'key.create_organization': (state, input, cause) =>
      createOrganizationKey(options, state, input, cause),
    'key.revoke_organization': (state, input, cause) =>
      revokeOrganizationKey(options, state, input, cause),
    'key.touch': lastUsed,
    'skill.create_organization': (state, input, cause) =>
      createSkill(skills(options), state, input, cause),
    'skill.import_organization': (state, input, cause) =>
      createSkill(skills(options), state, input.skill, cause),
    'skill.replace_organization': (state, input, cause) =>
      replaceSkill(skills(options), state, input, cause),
    'skill.delete_organization': deleteOrganizationSkill,
    'skill.hold': holdSkills,
    'skill.let_go': letGo,
    'handle.reserve': reserve,
    'handle.release': release,
    'organization_action.create': returningSecret((state: OrganizationState, input, cause) =>
      createAction(options, state, input, cause),
    ),
    'organization_action.update': (state, input, cause) =>
      updateAction(options, state, input, cause),
    'organization_action.delete': deleteAction,
    'organization_action.rotate_secret': returningSecret(rotateSecret),
    'organization_action.activate_secret': activateSecret,
    'organization_action.revoke_secret': revokeSecret,
    'resolver.put': (state, input, cause) => putResolver(options, state, input, cause),
    'oauth_origins.put': putOrigins,
    'device.request': requestDevice,
    'device.poll': pollDevice,
    'device.answer': answerDevice,
    'device.redeem': redeemDevice,
    'console_session.open': openSession,
    'console_session.end': endSession,
    'console_session.revoke': revokeSession,
    'console_session.revoke_all': revokeSessions,
    'console_account.put': putAccount,
    'sign_in_link.create': createLink,
    'quota.reserve': (state, input, cause) => reserveStorage(options, state, input, cause),
    'quota.settle': settleStorage,
    'quota.release': releaseStorage,
    'quota.refund': refundStorage,
    wake: (state, _, cause) => ({
      events: [
        ...question(state, cause),
        ...retire(state, cause),
        ...endDevices(state, cause),
        ...endConsole(state, cause),
      ],
      reply: undefined,
    }),
  },
  records: {
    'project.update': ({ projects }, { project: id }) => getOwn(projects, id),
    'skill.replace_organization': ({ skills: all }, { id }) => getOwn(all, id),
    'organization_action.update': ({ actions }, { action_id }) =>
      getOwn(actions, action_id)?.action,
    'resolver.put': (state) => shownResolver(state, options.brand),
  },
  evolve: {
    'organization.created': (state, { id, name }) => Object.assign(state, { id, name }),
    'project.created': project.created,
    'project.updated': project.updated,
    'project.deleted': (state, { id }) => {
      const kept = getOwn(state.projects, id)
      if (kept) state.projects[id] = { ...kept, deleted: true }
      for (const [workflow, claim] of Object.entries(state.claims))
        if (claim.project === id) delete state.claims[workflow]
      return state
    },
    ...evolveKeys,
    'skill.created': skill.created,
    'skill.updated': skill.updated,
    'skill.deleted': (state, { id }) => {
      delete state.grants[id]
      return skill.deleted(state, { id })
    },
    ...evolveHolds,
    'handle.reserved': (state, { id, handle, project }, at) => {
      state.claims[id] = { handle, project, due: at + QUERY_AFTER_MS }
      return state
    },
    'handle.questioned': (state, { id }) => {
      const claim = getOwn(state.claims, id)
      if (claim) state.claims[id] = { handle: claim.handle, project: claim.project }
      return state
    },
    'handle.released': (state, { id }) => {
      delete state.claims[id]
      return state
    },
    ...evolveActions,
    ...evolveDevices,
    ...evolveConsole,
    ...evolveStorage,
    ...evolveResolver,
  },
  react: {
    'project.deleted': ({ id }, self) => [
      {
        tell: {
          to: { kind: 'project', id, project: id },
          name: 'project.end',
          input: { organization: self.id },
        },
      },
    ],
    'handle.questioned': ({ id, project }, self) => [
      {
        tell: {
          to: { kind: 'project', id: project, project },
          name: 'handle.settle',
          input: { id, organization: self.id },
        },
      },
    ],
  },
  ask: {
    artifact_quota: storageOf(options),
    directory: directoryOf,
    skills: skillsOf,
    skill_grants: grantsOf,
    action: actionOf,
    handle_projects: (state, { handles }: { readonly handles: readonly string[] }) =>
      handles.map((handle) => holderOf(state, handle)?.project ?? null),
    device: deviceOf,
    console_session: sessionOf,
    console_sessions: sessionsOf,
    console_account: accountUsers,
    /** Whether any console session has ever been opened. */
    console_used: (state) => state.console_used === true,
    /** Returns the given ids that are not principals of organization keys. */
    unknown_principals: ({ keys }, { ids }: { readonly ids: readonly string[] }) => {
      const known = new Set(Object.values(keys).map(({ key }) => key.principal_id))
      return ids.filter((id) => !known.has(id))
    },
    /** Whether a project sends e-mail for interactions that do not specify a delivery. */
    email_notifications: ({ projects }, { project: id }: { readonly project: string }) =>
      getOwn(projects, id)?.email_notifications === true,
  },
  deadline: (state) => {
    const times = [
      nextQuestion(state),
      nextRetirement(state),
      nextDeviceEnd(state),
      nextConsoleEnd(state),
    ].filter((time) => time !== undefined)
    return times.length === 0 ? undefined : Math.min(...times)
  },
  // Snapshots of older releases lack newer fields, which get their initial values.
  recover: (state) => ({ ...initialOrganization(), ...state }),
})
