"""Public bounds of real tables, as somebody would write them who knows what the columns mean but has not seen the rows.

Round numbers and code books, never the least or the largest value of the table. They were written before anything was
measured and are not tuned.
"""

from typing import Any

Bounds = dict[str, Any]

ADULT: Bounds = {
    "age": (15, 90),  # of people who may work
    "fnlwgt": (0, 1_500_000),  # how many people of the country a row stands for
    "educational_num": (1, 16),  # code book: 16 levels
    "capital_gain": (0, 100_000),  # the survey's largest code is 99,999
    "capital_loss": (0, 5_000),
    "hours_per_week": (0, 100),
}
HOSPITAL: Bounds = {
    "time_in_hospital": (1, 14),  # days; the study took stays of 1 to 14 days
    "num_lab_procedures": (0, 150),
    "num_procedures": (0, 10),
    "num_medications": (0, 100),
    "number_outpatient": (0, 50),  # visits in the year before
    "number_emergency": (0, 50),
    "number_inpatient": (0, 25),
    "number_diagnoses": (0, 20),
}
BANK: Bounds = {
    "age": (18, 100),
    "duration": (0, 3_600),  # seconds of a call: an hour
    "campaign": (1, 50),  # calls to this client
    "pdays": (0, 999),  # code book: 999 if never called before
    "previous": (0, 10),
    "emp_var_rate": (-5, 5),  # per cent
    "cons_price_idx": (90, 100),
    "cons_conf_idx": (-100, 100),  # a balance of answers
    "euribor3m": (0, 6),  # per cent
    "nr_employed": (4_000, 6_000),  # thousands; about five million work in Portugal
}
FLIGHTS: Bounds = {
    "dep_delay": (-60, 300),  # minutes
    "arr_delay": (-60, 300),
    "air_time": (0, 720),
    "distance": (0, 5_000),  # miles: to Hawaii
    "hour": (0, 24),
}
NUMERIC: dict[str, Bounds] = {
    "adult_full": ADULT,
    "hospital_full": HOSPITAL,
    "bank_marketing": BANK,
    "flights_nyc": FLIGHTS,
}
TITLES = {
    "adult_full": "Adult",
    "hospital_full": "Hospital",
    "bank_marketing": "Bank",
    "flights_nyc": "Flights",
}
# Mixed tables: what an analyst would cluster people by. Levels are those of the code books; a missing value, or any other
# text, counts as the level "other".
MIXED: dict[str, Bounds] = {
    "adult_full": {
        "age": ADULT["age"],
        "educational_num": ADULT["educational_num"],
        "hours_per_week": ADULT["hours_per_week"],
        "capital_gain": ADULT["capital_gain"],
        "workclass": [
            "Private",
            "Self-emp-not-inc",
            "Self-emp-inc",
            "Federal-gov",
            "Local-gov",
            "State-gov",
            "Without-pay",
            "Never-worked",
        ],
        "marital_status": [
            "Married-civ-spouse",
            "Divorced",
            "Never-married",
            "Separated",
            "Widowed",
            "Married-spouse-absent",
            "Married-AF-spouse",
        ],
        "occupation": [
            "Tech-support",
            "Craft-repair",
            "Other-service",
            "Sales",
            "Exec-managerial",
            "Prof-specialty",
            "Handlers-cleaners",
            "Machine-op-inspct",
            "Adm-clerical",
            "Farming-fishing",
            "Transport-moving",
            "Priv-house-serv",
            "Protective-serv",
            "Armed-Forces",
        ],
        "relationship": ["Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"],
        "race": ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"],
        "gender": ["Female", "Male"],
    },
    "hospital_full": {
        "time_in_hospital": HOSPITAL["time_in_hospital"],
        "num_lab_procedures": HOSPITAL["num_lab_procedures"],
        "num_medications": HOSPITAL["num_medications"],
        "number_inpatient": HOSPITAL["number_inpatient"],
        "number_diagnoses": HOSPITAL["number_diagnoses"],
        "race": ["AfricanAmerican", "Asian", "Caucasian", "Hispanic", "Other"],
        "gender": ["Female", "Male"],
        "age": [f"[{age}-{age + 10})" for age in range(0, 100, 10)],
        "A1Cresult": ["None", "Norm", ">7", ">8"],
        "insulin": ["No", "Steady", "Up", "Down"],
        "change": ["No", "Ch"],
        "diabetesMed": ["No", "Yes"],
    },
    "bank_marketing": {
        "age": BANK["age"],
        "duration": BANK["duration"],
        "campaign": BANK["campaign"],
        "euribor3m": BANK["euribor3m"],
        "job": [
            "admin.",
            "blue-collar",
            "entrepreneur",
            "housemaid",
            "management",
            "retired",
            "self-employed",
            "services",
            "student",
            "technician",
            "unemployed",
        ],
        "marital": ["divorced", "married", "single"],
        "education": [
            "basic.4y",
            "basic.6y",
            "basic.9y",
            "high.school",
            "illiterate",
            "professional.course",
            "university.degree",
        ],
        "housing": ["no", "yes"],
        "loan": ["no", "yes"],
        "contact": ["cellular", "telephone"],
        "poutcome": ["failure", "nonexistent", "success"],
    },
}
