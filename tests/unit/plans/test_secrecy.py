# SPDX-License-Identifier: Apache-2.0
"""One rule says what of a plan is secret: lists, exports and errors follow."""

import dataclasses
import io
import json

import testtools

from heat_plugins import errors
from heat_plugins import masking
from heat_plugins.content import tarballs
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import references
from heat_plugins.plans.deploy import comparing
from heat_plugins.plans.deploy import deploying
from heat_plugins.plans.parameters import parameters
from heat_plugins.plans.parameters import secrecy
from heat_plugins.plans.parameters import settings
from tests.unit.plans import fake_heat
from tests.unit.plans import fakes


def names(files, passwords=None, type_='string', set_=None):
    """Return the secret names of a plan.

    :param files: names of parameters that a template declares, by its path.
    :param set_: what environments set, by their paths.
    """
    templates = {
        path: json.dumps(
            {
                'heat_template_version': '2021-04-16',
                'parameters': {name: {'type': type_} for name in declared},
            }
        )
        for path, declared in files.items()
    }
    environments_ = {
        path: json.dumps({'parameter_defaults': values})
        for path, values in (set_ or {}).items()
    }
    content = references.Resolved(
        template='{}',
        environments=tuple(environments_),
        files={**templates, **environments_},
    )
    plan = environments.PlanEnvironment(
        template='root.yaml', passwords=passwords or {}
    )
    return secrecy.SecretNames.of(content, plan)


class NamesTest(testtools.TestCase):
    SECRET = (
        'DefaultMysqlRootPassword', 'DefaultPcsdPassword', 'admin_password',
        'DefaultPasswords', 'passwd', 'LoggingSSLKeyPassphrase',
        'DefaultHorizonSecret', 'CinderPureAPIToken', 'DefaultRabbitCookie',
        'HeatAuthEncryptionKey', 'SanPrivateKey', 'SharedKey',
        'KeystoneFernetKey0', 'KeystoneCredential1', 'api_key', 'api-key',
    )  # fmt: skip
    PLAIN = (
        'PasswordLength', 'KeystoneTokenProvider', 'key_name', 'SSHKeyName',
        'PublicKey', 'HorizonPasswordValidator', 'KeystoneRegion', 'Tokens2Go',
        'TLSKeysDirectory', 'who',
    )  # fmt: skip

    def test_a_name_says_so_by_its_end(self):
        found = names({'a.yaml': [*self.SECRET, *self.PLAIN]})
        self.assertEqual(set(self.SECRET), found.secret)
        self.assertEqual({*self.SECRET, *self.PLAIN}, found.known)

    def test_a_number_or_a_switch_is_none(self):
        for type_ in ('number', 'boolean'):
            found = names({'passwords.yaml': ['UseToken', 'a']}, type_=type_)
            self.assertEqual(set(), found.secret)

    def test_all_in_a_file_of_passwords_is_one(self):
        for path in (
            'default_passwords.yaml',
            'a/passwords.yml',
            'tripleo-overcloud-passwords.yaml',
            'my.secret.yaml',
        ):
            self.assertEqual({'Root'}, names({path: ['Root']}).secret, path)
            found = names({'a.yaml': ['Root']}, set_={path: {'Root': 'x'}})
            self.assertEqual({'Root'}, found.secret)
        for path in ('password_policy.yaml', 'nosecrets.yaml'):
            self.assertEqual(set(), names({path: ['Root']}).secret, path)

    def test_so_is_a_password_of_the_plan_that_was_set_by_hand(self):
        found = names({'a.yaml': ['Root']}, passwords={'Root': None})
        self.assertEqual({'Root'}, found.secret)

    def test_a_name_says_so_where_no_template_has_it(self):
        set_ = {'a.yaml': {'OldPassword': 'x', 'Old': 'y'}}
        self.assertEqual({'OldPassword'}, names({}, set_=set_).secret)

    def test_entries_of_maps_have_names_as_well(self):
        found = names({'a.yaml': ['Extra', 'Root_password']})
        extra = {
            'keystone::admin_password': 'geheim',
            'users': [{'name': 'me', 'private_key': {'pem': 'verborgen'}}],
        }
        values = {'Extra': extra, 'Root_password': {'a': ['heimlich']}}
        self.assertEqual(
            {'geheim', 'verborgen', 'heimlich'}, set(found.texts(values))
        )
        shown, left_out = found.without(values)
        self.assertEqual({'Extra': {'users': [{'name': 'me'}]}}, shown)
        self.assertEqual(
            {
                'Extra.keystone::admin_password',
                'Extra.users.private_key',
                'Root_password',
            },
            left_out,
        )
        self.assertEqual(
            {
                'keystone::admin_password': masking.MASK,
                'users': [{'name': 'me', 'private_key': masking.MASK}],
            },
            secrecy.masked(extra),
        )


class FieldTest(fakes.PlanCase):
    """A plan whose authors hide nothing, with what its users have set."""

    FILES = {
        'root.yaml': b"""\
heat_template_version: 2021-04-16
parameters:
  who: {type: string, default: world}
  DefaultPcsdPassword: {type: string, default: changeme}
  Extra: {type: json, default: {}}
  MysqlRoot: {type: string}
resources:
  passwords: {type: default_passwords.yaml}
""",
        'default_passwords.yaml': b"""\
heat_template_version: 2021-04-16
parameters:
  MysqlRoot: {type: string}
""",
    }
    SET = {
        'who': 'visible',
        'DefaultPcsdPassword': 'geheim-1',
        'Extra': {'a': 1, 'admin_password': 'geheim-2', 'pin_secret': 7},
        'MysqlRoot': 'geheim-3',
    }

    def setUp(self):
        super().setUp()
        self.plans.change(
            'plan',
            lambda found: dataclasses.replace(
                found,
                parameter_defaults=self.SET,
                workflow_parameters={'a': {'b_password': 'geheim-4'}},
            ),
        )
        self.settings = settings.Settings(self.plans)

    def assert_shows(self, found, *parts):
        self.assertNotIn('geheim', str(found))
        for part in ('visible', *parts):
            self.assertIn(part, str(found))

    def test_a_list_of_parameters(self):
        root = self.settings.show('plan').root
        found = parameters.effective(root)
        self.assert_shows(dataclasses.asdict(root))
        hidden = {name for name in found if found[name].parameter.hidden}
        self.assertEqual({'DefaultPcsdPassword', 'MysqlRoot'}, hidden)
        extra = {'a': 1, 'admin_password': '******', 'pin_secret': '******'}
        self.assertEqual(extra, found['Extra'].parameter.value)
        self.assertEqual(
            masking.MASK, found['DefaultPcsdPassword'].parameter.default
        )

    def test_what_an_earlier_release_kept_of_a_list_is_not_shown(self):
        plan = self.plans.load('plan')
        kept = {'root': {'path': '', 'description': 'geheim'}}
        name = f'parameters/2/{plan.content_hash}'
        self.plans.annex(plan).write(name, kept)
        self.assert_shows(dataclasses.asdict(self.settings.show('plan')))

    def test_an_export(self):
        file = io.BytesIO()
        left_out = self.plans.export('plan', file)
        file.seek(0)
        text = tarballs.read(file)['plan-environment.yaml'].decode()
        self.assert_shows(text, 'a: 1')
        self.assertEqual(
            (
                'DefaultPcsdPassword',
                'Extra.admin_password',
                'Extra.pin_secret',
                'MysqlRoot',
                'workflow_parameters.a.b_password',
            ),
            left_out.values,
        )

    def test_a_difference(self):
        content = self.plans.resolve(self.plans.load('plan'))
        self.heat.become('plan', 'CREATE_COMPLETE')
        former = fake_heat.answer(content)['Environment']
        former['parameter_defaults'] = {
            'who': 'geheim-0',
            'DefaultPcsdPassword': 'geheim-0',
            'Extra': {'b_token': 'geheim-5'},
        }
        self.heat.contents['plan'] = ({}, former, {})
        found = comparing.Comparer(self.plans).differences('plan')
        self.assert_shows(found, 'DefaultPcsdPassword', 'b_token')

    def test_what_heat_quotes(self):
        def refuse(*_, **__):
            raise errors.ServiceError(f'{self.SET} is invalid', 400)

        self.heat.create = refuse
        deployer = deploying.Deployer(self.plans)
        exc = self.assertRaises(errors.ServiceError, deployer.start, 'plan')
        self.assert_shows(exc)

    def test_what_does_not_fit(self):
        exc = self.assertRaises(
            errors.Invalid,
            self.settings.update,
            'plan',
            {'DefaultPcsdPassword': {'a': 'geheim-6'}},
        )
        self.assertIn('a hidden value', str(exc))
